package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// buckets is how Config.BucketAuto cut the gradients. Rank 0 decides, and all take it.
type buckets struct {
	checkpoint.Buckets
	Why string `json:"why"`
}

// kept is what a checkpoint keeps.
func (b buckets) kept() *checkpoint.Buckets {
	if b.Cap == 0 {
		return nil
	}
	return &b.Buckets
}

// autoCut chooses the sizes of buckets: those of the checkpoint that the run resumes from, so that it continues bit by bit, else those for which a simulated
// step on the link of this job exposes the least communication.
func (t *Trainer) autoCut(ctx context.Context, params []ddp.Param) error {
	if !t.cfg.BucketAuto || t.evaluating {
		return nil
	}
	var mine []byte
	if t.comm.Rank() == 0 {
		b, err := t.chooseCut(ctx, params)
		if err == nil {
			mine, err = json.Marshal(b)
		}
		if err != nil {
			return err
		}
	}
	text, err := t.share(ctx, mine)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.auto); err != nil {
		return fmt.Errorf("train: rank %d: the buckets of rank 0: %w", t.comm.Rank(), err)
	}
	t.cfg.BucketMB, t.cfg.FirstMB, t.cfg.LastMB = inMiB(t.auto.Cap), inMiB(t.auto.First), inMiB(t.auto.Last)
	if t.comm.Rank() == 0 {
		slog.Info("buckets cut for this job: " + t.auto.Why)
	}
	return nil
}

func inMiB(n int64) float64 { return float64(n) / (1 << 20) } // exact, and so is the way back

// chooseCut is rank 0's choice.
func (t *Trainer) chooseCut(ctx context.Context, params []ddp.Param) (b buckets, err error) {
	ck, err := t.peek(ctx)
	if err != nil {
		return b, err
	}
	if ck != nil {
		if st := ck.State; st.Buckets != nil && st.World == t.comm.Size() {
			b := *st.Buckets
			return buckets{b, fmt.Sprintf("as in the checkpoint %s, %.3g MiB (first %.3g, last %.3g)", ck.Name, inMiB(b.Cap), inMiB(b.First), inMiB(b.Last))}, nil
		}
	}
	cl, err := t.cluster()
	if err != nil {
		return usual(err), nil
	}
	plan, err := (&ddp.Config{Params: params}).Cut(t.comm.Size())
	if err != nil {
		return b, err
	}
	s, _, err := t.simulated(plan, Network{Cluster: cl})
	if err != nil {
		return usual(err), nil
	}
	if s.Codec, err = t.coding(); err != nil {
		return usual(err), nil
	}
	best, err := simulate.Best(plan.Params, s, 0)
	if err != nil {
		return b, err
	}
	return buckets{checkpoint.Buckets{Cap: best.Config.CapBytes, First: best.Config.FirstBytes, Last: best.Config.LastBytes}, best.Sentence()}, nil
}

// usual is the cut of a job of which too little is known.
func usual(why error) buckets {
	const mib = 1 << 20
	return buckets{checkpoint.Buckets{Cap: 25 * mib, First: mib, Last: mib}, "25 MiB as usual, because nothing can be predicted: " + why.Error()}
}

// coding is the simulated codec of the run.
func (t *Trainer) coding() (simulate.Codec, error) {
	c, ok := simulate.CodecOf(t.cfg.Compress.Codec)
	if !ok {
		return c, fmt.Errorf("the cost of codec %s is not known", t.cfg.Compress.Codec)
	}
	return c, nil
}

// networked is a communicator that knows the network between its ranks.
type networked interface{ Network() link.Cluster }

// network returns what knows the network by which gradients travel; nil if nothing does.
func (t *Trainer) network() networked {
	if n, ok := t.data.(networked); ok {
		return n
	}
	if n, ok := t.comm.(networked); ok && t.data.Transport() == "staged" { // through the memory of the host
		return n
	}
	return nil
}

// cluster describes this job's network, as it was measured at the start.
func (t *Trainer) cluster() (link.Cluster, error) {
	c := link.Cluster{Ranks: t.comm.Size(), Hosts: 1}
	n := t.network()
	switch {
	case n != nil:
		c = n.Network()
	case c.Ranks > 1 && (t.dev.Info().Separate || t.cfg.LocalSize < c.Ranks):
		return c, fmt.Errorf("transport %s does not tell its speed", t.data.Transport())
	}
	if c.Hosts == 0 {
		return c, errors.New("hosts have different numbers of ranks")
	}
	return c, c.Valid()
}

// forecast predicts a step on the network of this job, and what compression would change; nothing if there is no network, or too little is known.
func (t *Trainer) forecast() (facts []telemetry.Fact) {
	if t.comm.Size() == 1 || t.network() == nil {
		return nil
	}
	cl, err := t.cluster()
	if err != nil || cl.Hosts == 1 {
		return nil
	}
	s, _, err := t.simulated(t.eng.Plan(), Network{Cluster: cl})
	if err != nil {
		return nil
	}
	p := Prediction{Ranks: cl.Ranks, Hosts: cl.Hosts}
	if s.Codec, err = t.coding(); err != nil {
		return nil
	}
	if p.Result, err = simulate.Run(s); err != nil {
		return nil
	}
	p.Efficiency = p.Result.Efficiency()
	facts = append(facts, telemetry.Fact{Key: "predicted", Value: p.Sentence()})
	if s.Codec.Name == "" && p.compare(s, p.Result) == nil {
		facts = append(facts, telemetry.Fact{Key: "compress", Value: p.Advice()})
	}
	return facts
}
