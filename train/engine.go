package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
)

func alone() comm.Communicator { return self.New() }

// params lists the trained parameters in the order in which their gradients become ready, and keeps that order.
func (t *Trainer) params() ([]ddp.Param, error) {
	ws := t.train.prog.Weights()
	t.order = t.order[:0]
	for i, w := range ws {
		if w.Grad {
			t.order = append(t.order, i)
		}
	}
	if len(t.order) == 0 {
		return nil, launch.WithCode(launch.ExitRecipe, errors.New("train: the model has no trainable parameter\nhint: model.freeze or the groups of a recipe, "+
			"Groups in Go, freeze all; leave the last layer trainable"))
	}
	slices.SortStableFunc(t.order, func(a, b int) int { return ws[a].Ready - ws[b].Ready })
	groups, err := t.cfg.optimGroups(t.train.net.b.Params())
	if err != nil {
		return nil, err
	}
	var params []ddp.Param
	for _, i := range t.order {
		params = append(params, ddp.Param{Name: ws[i].Name, Elems: ws[i].Elems, DType: npu.F32, Group: groups[ws[i].Name]})
	}
	return params, nil
}

// openTransport opens what carries gradients.
func (t *Trainer) openTransport(ctx context.Context) (err error) {
	c := &t.cfg
	if err := t.sameFamily(ctx); err != nil {
		return err
	}
	t.data, err = comm.ForDevice(ctx, comm.Opening{Control: t.comm, Device: t.dev, LocalRank: c.LocalRank, LocalSize: c.LocalSize, Node: c.Node,
		Timeout: c.Timeout, LongWork: c.LongWork, Options: c.Transport})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("train: rank %d: %w", t.comm.Rank(), err)
	if launch.ExitCode(err) != launch.ExitTraining { // a deadline, or wrong settings
		return err
	}
	return launch.WithCode(launch.ExitUnavailable, err)
}

// sameFamily checks that all ranks compute on devices of one family: device = auto takes another one on a rank for which the machine has none left.
func (t *Trainer) sameFamily(ctx context.Context) error {
	family := t.dev.Info().Family
	err := comm.Consensus(ctx, t.comm, "the device family", []comm.Item{{Name: "device", Text: family}})
	var differ *comm.ConsensusError
	if errors.As(err, &differ) {
		return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("train: rank %d computes on %s: %w\n"+
			"hint: start no more ranks than there are devices, or choose the device yourself, such as train.device = \"cpu\"", t.comm.Rank(), family, err))
	}
	return err
}

// openEngine cuts the buckets and checks that all ranks run the same thing.
func (t *Trainer) openEngine(ctx context.Context) error {
	params, err := t.params()
	if err != nil {
		return err
	}
	data, err := t.cfg.Data.Fingerprint()
	if err != nil {
		return err
	}
	held := "none"
	if t.cfg.Eval != nil {
		if held, err = t.cfg.Eval.Fingerprint(); err != nil {
			return err
		}
	}
	same := slices.Concat([]comm.Item{{Name: "version", Text: Version()}}, t.cfg.Same, []comm.Item{ // what the user wrote before what follows from it
		{Name: "plan of the model", Text: t.train.prog.Plan().Fingerprint()}, {Name: "training data", Text: data},
		{Name: "settings", Text: t.cfg.settings()}, {Name: "evaluation data", Text: held}, {Name: "length and intervals", Text: t.intervals()},
		{Name: "start of the run", Text: t.startsFrom()}, {Name: "order of sums", Text: comm.Fold(t.comm)},
	})
	var trace func(ddp.Span)
	if t.cfg.Trace {
		trace = t.spans
	}
	if err := t.openCodec(); err != nil {
		return err
	}
	if err := t.autoCut(ctx, params); err != nil {
		return err
	}
	c := t.cutting(params)
	c.Comm, c.Control, c.Device, c.Timeout, c.LongWork = t.data, t.comm, t.dev, t.cfg.Timeout, t.cfg.LongWork
	c.VoteFirst, c.Same, c.Trace = true, same, trace
	c.Codec, c.CodecFrom = t.cfg.Codec, int64(t.cfg.CodecFrom)
	c.OnBucket = func(k int, _ comm.Mem, after npu.Event) error { t.landed <- landed{k, after}; return nil }
	if t.eng, err = ddp.New(ctx, c); err != nil {
		return err
	}
	t.landed = make(chan landed, len(t.eng.Buckets()))
	t.marks, err = newMarks(t.dev, len(t.eng.Buckets()))
	return err
}

// cutting returns the settings that decide how gradients are cut into buckets.
func (t *Trainer) cutting(params []ddp.Param) ddp.Config {
	return ddp.Config{Params: params, BucketMB: t.cfg.BucketMB, FirstBucketMB: t.cfg.FirstMB, LastBucketMB: t.cfg.LastMB}
}

// groups lists, for each bucket, the weights of the program whose gradients are in it.
func (t *Trainer) groups(p *bucket.Plan) (groups [][]int) {
	for _, b := range p.Buckets {
		var group []int
		for _, pl := range b.Places {
			group = append(group, t.order[pl.Param])
		}
		groups = append(groups, group)
	}
	return groups
}

// settings prints what affects the numbers and is not in the plan.
func (c *Config) settings() string {
	out := fmt.Sprintf("seed %d batch %d accumulate %d compute %v clip %g optim %v", c.Seed, c.Batch, c.Accumulate, c.Compute, c.ClipNorm, c.Optim)
	if c.scales() {
		out += " " + c.Scaler.String()
	}
	if c.Compress.on() {
		out += fmt.Sprintf(" compress %v from step %d", c.Compress, c.CodecFrom)
	}
	return out
}

// startsFrom prints what kind of files a run starts from; their paths are rank 0's matter.
func (t *Trainer) startsFrom() string {
	c := &t.cfg
	return fmt.Sprintf("weights of a file %v; newest checkpoint %v; a given checkpoint %v", c.InitFrom != "", c.Resume && c.SaveDir != "", c.ResumeFrom != "")
}

// intervals prints what determines the order of collectives.
func (t *Trainer) intervals() string {
	c := &t.cfg
	return fmt.Sprintf("%d steps, %d an epoch; evaluation every %d in batches of %d; saving %v every %d; comparing every %d",
		t.total, t.perEpoch, c.EvalEvery, c.EvalBatch, c.SaveDir != "", c.SaveEvery, c.CheckEvery)
}
