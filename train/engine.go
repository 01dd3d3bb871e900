package train

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
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
		return nil, fmt.Errorf("train: the model has no parameter to train")
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

// openEngine cuts the buckets and makes sure that all ranks run the same thing.
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
	same := append([]comm.Item{
		{Name: "version", Text: Version()}, {Name: "plan of the model", Text: t.train.prog.Plan().Fingerprint()}, {Name: "training data", Text: data},
		{Name: "settings", Text: t.cfg.settings()}, {Name: "evaluation data", Text: held}, {Name: "length and intervals", Text: t.intervals()},
	}, t.cfg.Same...)
	var trace func(ddp.Span)
	if t.cfg.Trace {
		trace = t.spans
	}
	c := t.cutting(params)
	c.Comm, c.Device, c.Timeout, c.LongWork, c.VoteFirst, c.Same, c.Trace = t.comm, t.dev, t.cfg.Timeout, t.cfg.LongWork, true, same, trace
	c.OnBucket = func(k int, _ comm.Mem) error { t.landed <- k; return nil }
	if t.eng, err = ddp.New(ctx, c); err != nil {
		return err
	}
	t.landed = make(chan int, len(t.eng.Buckets()))
	t.marks, err = newMarks(t.dev, len(t.eng.Buckets()))
	return err
}

// cutting is what decides how gradients are cut into buckets.
func (t *Trainer) cutting(params []ddp.Param) ddp.Config {
	return ddp.Config{Params: params, BucketMB: t.cfg.BucketMB, FirstBucketMB: t.cfg.FirstMB}
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

// settings prints what decides about the numbers and is not in the plan.
func (c *Config) settings() string {
	return fmt.Sprintf("seed %d batch %d accumulate %d compute %v clip %g optim %v", c.Seed, c.Batch, c.Accumulate, c.Compute, c.ClipNorm, c.Optim)
}

// intervals prints what decides which collectives come when.
func (t *Trainer) intervals() string {
	c := &t.cfg
	return fmt.Sprintf("%d steps, %d an epoch; evaluation every %d in batches of %d; saving %v every %d; comparing every %d",
		t.total, t.perEpoch, c.EvalEvery, c.EvalBatch, c.SaveDir != "", c.SaveEvery, c.CheckEvery)
}

// bind allocates memory and binds both programs and the optimizer to it.
func (t *Trainer) bind() error {
	ws := t.train.prog.Weights()
	slots := map[int]slot{}
	grads := make([]npu.Ptr, len(ws))
	var bytes []int64
	for k, b := range t.eng.Buckets() {
		bytes = append(bytes, b.Bytes)
		for _, pl := range b.Places {
			w := t.order[pl.Param]
			slots[w], grads[w] = slot{k, pl.Offset}, t.eng.Grad(pl.Param).Ptr
		}
	}
	var err error
	if t.store, err = newStore(t.dev, t.train.prog, slots, bytes); err != nil {
		return err
	}
	need := t.train.prog.Scratch()
	if t.eval != nil {
		need = max(need, t.eval.prog.Scratch())
	}
	if t.scratch, err = t.dev.Alloc(need); err != nil {
		return fmt.Errorf("train: %s of activations on %s: %w\nhint: a smaller batch, or bf16", amount.Bytes(need), t.dev.Info().Name, err)
	}
	t.train.prog.Group(t.groups(t.eng.Plan()))
	mem, err := t.memory(t.train)
	if err != nil {
		return err
	}
	mem.Grads = grads
	if err := t.train.prog.Bind(mem); err != nil {
		return err
	}
	if err := t.train.wire(t.dev, t.cfg.Data.Fields(), t.cfg.Accumulate); err != nil {
		return err
	}
	if t.eval != nil {
		mem, err := t.memory(t.eval)
		if err != nil {
			return err
		}
		for i, s := range t.eval.prog.States() {
			if mem.States[i], err = t.store.alloc(t.dev, s.Bytes, s.Name); err != nil {
				return err
			}
		}
		t.evalStates = mem.States
		if err := t.eval.prog.Bind(mem); err != nil {
			return err
		}
		if err := t.eval.wire(t.dev, t.cfg.Eval.Fields(), 1); err != nil {
			return err
		}
	}
	return t.openOptimizer(bytes)
}

func (t *Trainer) openOptimizer(bytes []int64) (err error) {
	var segs []optim.Segment
	for k, b := range t.eng.Buckets() {
		s := optim.Segment{Name: fmt.Sprintf("bucket %d", k), Grad: b.Mem.Ptr, Elems: bytes[k] / 4}
		for _, pl := range b.Places {
			p := t.eng.Plan().Params[pl.Param]
			s.Tensors = append(s.Tensors, optim.Tensor{Name: p.Name, Off: pl.Offset / 4, Elems: p.Elems, Group: p.Group})
		}
		slices.SortFunc(s.Tensors, func(a, b optim.Tensor) int { return int(a.Off - b.Off) })
		w := t.order[b.Places[0].Param]
		s.Weight = t.store.weights[w].At(-b.Places[0].Offset)
		segs = append(segs, s)
	}
	t.opt, err = optim.New(t.dev, t.cfg.Optim, segs)
	return err
}

// Version is the version of gotrain as the build recorded it.
func Version() string {
	if i, ok := debug.ReadBuildInfo(); ok {
		for _, s := range i.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
		if i.Main.Version != "" {
			return i.Main.Version
		}
	}
	return "devel"
}
