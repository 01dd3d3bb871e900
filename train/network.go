package train

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Network is what a prediction is made for.
type Network struct {
	Cluster  link.Cluster
	Compress string             // the codec of the run: "none", "f16", "bf16", "int8"
	Measured *telemetry.Kernels // times of a run; nil: estimated from the peak of the device
}

// Prediction is a step on a network.
type Prediction struct {
	Ranks      int             `json:"ranks"`
	Hosts      int             `json:"hosts"`
	Link       link.Link       `json:"link"`
	Algorithms string          `json:"algorithms"`         // how ranks reduce, as a sentence
	Kernels    string          `json:"kernels"`            // where their times are from
	Alone      time.Duration   `json:"alone_ns"`           // a step of one rank
	Compress   string          `json:"compress"`           // the codec of the run
	Result     simulate.Result `json:"result"`             // with it
	Efficiency float64         `json:"efficiency"`         // speed of a rank relative to one that trains alone
	Bound      time.Duration   `json:"bound_ns"`           // exposed on an ideal wire in float32: no implementation hides more
	Measured   *Measured       `json:"measured,omitempty"` // the run that the times are from, if it had as many ranks
	Codecs     []Saving        `json:"codecs,omitempty"`
	Best       Cut             `json:"best_buckets"` // what bucket_mb = "auto" would choose
}

// Measured is what a run with this number of ranks took. A prediction for the network of that run can be compared with it.
type Measured struct {
	Step    time.Duration `json:"step_ns"`
	Exposed time.Duration `json:"exposed_ns"`
	Off     float64       `json:"off"` // how much longer the predicted step is than the measured one, as a part of it
}

// Saving is what a codec would change.
type Saving struct {
	Codec   string        `json:"codec"`
	Step    time.Duration `json:"step_ns"`
	Exposed time.Duration `json:"exposed_ns"`
	Saves   time.Duration `json:"saves_ns"` // of a step without one; below zero: it costs
	Memory  int64         `json:"memory"`   // bytes of a rank
}

// Cut is a way to cut buckets, in MiB.
type Cut struct {
	Cap     float64       `json:"bucket_mb"`
	First   float64       `json:"first_bucket_mb"`
	Last    float64       `json:"last_bucket_mb"`
	Buckets int           `json:"buckets"`
	Exposed time.Duration `json:"exposed_ns"`
}

// Predict simulates a step on a network. Summarise comes first. It fails if the device's peak is not known and no times are given. With Config.BucketAuto it
// cuts the buckets as a run on this network would, also those of the summary.
func (t *Trainer) Predict(sum *Summary, n Network) (*Prediction, error) {
	if err := n.Cluster.Valid(); err != nil {
		return nil, err
	}
	params, plan, err := t.cut(n.Cluster.Ranks)
	if err != nil {
		return nil, err
	}
	s, source, err := t.simulated(plan, n)
	if err != nil {
		return nil, err
	}
	codec, ok := simulate.CodecOf(n.Compress)
	if !ok {
		return nil, fmt.Errorf("train: no codec %q", n.Compress)
	}
	p := &Prediction{Ranks: n.Cluster.Ranks, Hosts: n.Cluster.Hosts, Link: n.Cluster.Link, Algorithms: n.Cluster.Says(), Kernels: source, Compress: n.Compress}
	if n.Cluster.Hosts == 1 {
		p.Link = n.Cluster.Inside()
	}
	plain, err := simulate.Run(s)
	if err != nil {
		return nil, err
	}
	if err := p.compare(s, plain); err != nil {
		return nil, err
	}
	for i := range p.Codecs {
		hosts, each := t.between(p.Ranks, p.Hosts)
		cost := t.compressed(p.Codecs[i].Codec, plan, hosts, each)
		p.Codecs[i].Memory = cost.Buffers + cost.Residuals
	}
	s.Codec = codec
	best, err := simulate.Best(params, s, 0)
	if err != nil {
		return nil, err
	}
	p.Best = cutOf(best)
	if t.cfg.BucketAuto {
		t.cfg.BucketMB, t.cfg.FirstMB, t.cfg.LastMB = p.Best.Cap, p.Best.First, p.Best.Last
		if _, s.Buckets, err = t.cut(p.Ranks); err != nil {
			return nil, err
		}
		sum.Buckets = nil
		if _, err = t.summariseBuckets(sum, p.Ranks); err != nil {
			return nil, err
		}
	}
	if p.Result, err = simulate.Run(s); err != nil {
		return nil, err
	}
	p.Alone, p.Efficiency = p.Result.Alone, p.Result.Efficiency()
	if k := n.Measured; k != nil && k.World == p.Ranks {
		p.Measured = &Measured{Step: duration(k.Took), Exposed: duration(k.Exposed), Off: p.Result.Time.Seconds()/k.Took - 1}
	}
	least, err := simulate.Bound(s)
	if err != nil {
		return nil, err
	}
	p.Bound = least.Exposed
	return p, nil
}

// compare predicts every codec, if there is something to send.
func (p *Prediction) compare(s simulate.Step, plain simulate.Result) error {
	if s.Cluster.Ranks == 1 {
		return nil
	}
	for _, c := range simulate.Codecs {
		s.Codec = c
		r, err := simulate.Run(s)
		if err != nil {
			return err
		}
		p.Codecs = append(p.Codecs, Saving{Codec: c.Name, Step: r.Time, Exposed: r.Exposed, Saves: plain.Time - r.Time})
	}
	return nil
}

// cut plans the buckets of the run for a number of ranks.
func (t *Trainer) cut(ranks int) ([]bucket.Param, *bucket.Plan, error) {
	params, err := t.params()
	if err != nil {
		return nil, nil, err
	}
	c := t.cutting(params)
	plan, err := c.Cut(ranks)
	if err != nil {
		return nil, nil, err
	}
	return plan.Params, plan, nil
}

// simulated describes a step for the simulation, and where its times are from.
func (t *Trainer) simulated(plan *bucket.Plan, n Network) (s simulate.Step, source string, err error) {
	s = simulate.Step{Buckets: plan, Cluster: n.Cluster, Together: t.cfg.ClipNorm > 0 || t.cfg.scales()}
	k := n.Measured
	if s.Compute, err = t.timeline(); err != nil && k == nil {
		return s, "", err
	}
	source = "estimated from the peak of the device"
	if k == nil {
		return s, source, nil
	}
	if err != nil { // only the proportions matter
		t.peak = 1e12
		if s.Compute, err = t.timeline(); err != nil {
			return s, "", err
		}
	}
	if k.Batch != 0 && (k.Batch != t.cfg.Batch || k.Accumulate != t.cfg.Accumulate) {
		return s, "", fmt.Errorf("the measured run had batches of %d x %d a rank, this plan has %d x %d\nhint: plan the batch that was measured, with "+
			"--set train.batch_per_rank=%d --set train.accumulate_steps=%d", k.Batch, k.Accumulate, t.cfg.Batch, t.cfg.Accumulate, k.Batch, k.Accumulate)
	}
	names := make([]string, len(plan.Params))
	gradients := int64(0)
	for i, p := range plan.Params {
		names[i] = p.Name
	}
	for _, b := range plan.Buckets {
		gradients += b.Bytes
	}
	s.Compute, err = measured(s.Compute, names, gradients, *k)
	return s, fmt.Sprintf("measured, medians over %d steps", k.Steps), err
}

func cutOf(c simulate.Choice) Cut {
	mb := func(n int64) float64 { return float64(n) / (1 << 20) }
	return Cut{Cap: mb(c.Config.CapBytes), First: mb(c.Config.FirstBytes), Last: mb(c.Config.LastBytes), Buckets: c.Buckets, Exposed: c.Result.Exposed}
}

// Sentence says what a prediction comes to.
func (p *Prediction) Sentence() string {
	r := simulate.Round
	if p.Ranks == 1 {
		return fmt.Sprintf("%v a step, nothing to send", r(p.Result.Time))
	}
	return fmt.Sprintf("%v a step, %v of it exposed communication: %.0f %% of the speed of one rank", r(p.Result.Time), r(p.Result.Exposed), 100*p.Efficiency)
}

// Advice says whether compression is of use on this network: a codec saves a hundredth of a step or more.
func (p *Prediction) Advice() string {
	if p.Ranks == 1 {
		return "of no use: there is one rank"
	}
	var best *Saving
	for i, c := range p.Codecs {
		if best == nil || c.Saves > best.Saves {
			best = &p.Codecs[i]
		}
	}
	plain := best.Step + best.Saves
	switch {
	case best.Saves < plain/100 && p.Hosts == 1:
		return "of no use: the ranks share one machine"
	case best.Saves < plain/100:
		return fmt.Sprintf("of no use on this network: it saves at most %v of a step of %v", simulate.Round(max(0, best.Saves)), simulate.Round(plain))
	}
	return fmt.Sprintf("comm.compress = %q saves %v of a step of %v", best.Codec, simulate.Round(best.Saves), simulate.Round(plain))
}
