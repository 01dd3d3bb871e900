package optim

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// bound is a launch that awaits the workspace, whose size is known only when all kernels are.
type bound struct {
	kernel npu.Kernel
	args   []npu.Ptr
	into   *[]npu.Launch
	what   string
}

// bindAll compiles every kernel, then allocates the one workspace, then binds.
func (o *Optimizer) bindAll() error {
	o.measures = make([][]npu.Launch, len(o.segs))
	var todo []bound
	var size int64
	add := func(into *[]npu.Launch, what string, op npu.Op, args ...npu.Ptr) error {
		k, err := o.compile(op)
		if err != nil {
			return fmt.Errorf("optim: %s: %w", what, err)
		}
		size = max(size, k.Workspace())
		todo = append(todo, bound{k, args, into, what})
		return nil
	}
	for i := range o.segs {
		s := &o.segs[i]
		if !s.Grad.IsNil() {
			if err := add(&o.measures[i], "norm of "+s.Name, sumSqOp(s.Elems), s.Grad, o.norm); err != nil {
				return err
			}
			if err := o.planStep(s, add); err != nil {
				return err
			}
		}
		if o.cfg.EMA.On() {
			hyper := o.hyper.At(int64(hyperStride * len(o.cfg.Groups)))
			if err := add(&s.step, "average of "+s.Name, emaOp(s.Elems), hyper, s.average, s.Weight, s.average); err != nil {
				return err
			}
		}
	}
	if size > 0 {
		var err error
		if o.scratch, err = o.alloc("workspace", size); err != nil {
			return err
		}
	}
	for _, b := range todo {
		l, err := b.kernel.Bind(b.args, o.scratch)
		if err != nil {
			return fmt.Errorf("optim: %s: bind: %w", b.what, err)
		}
		*b.into = append(*b.into, l)
	}
	return nil
}

// stretch is a run of a segment with its memory.
type stretch struct {
	run
	hyper, w, g npu.Ptr
	states      []npu.Ptr
	sums        npu.Ptr // 32 bytes for norms
}

// launch is an op and its arguments.
type launch struct {
	op   npu.Op
	args []npu.Ptr
}

// planStep lists the launches that step one segment.
func (o *Optimizer) planStep(s *segment, add func(*[]npu.Launch, string, npu.Op, ...npu.Ptr) error) error {
	sum := 0
	for _, r := range s.runs {
		what := fmt.Sprintf("%s of %s, elements %d…%d", o.cfg.Rule, s.Name, r.off, r.off+r.elems)
		x := stretch{run: r, hyper: o.hyper.At(int64(hyperStride * r.group)), w: s.Weight.At(4 * r.off), g: s.Grad.At(4 * r.off), sums: o.sums}
		for _, st := range s.state {
			x.states = append(x.states, st.At(4*r.off))
		}
		if o.rule.adapted(&o.cfg, r.group) {
			x.sums = s.sums.At(int64(32 * sum))
			sum++
		}
		list := []launch{}
		if o.rule.launches != nil {
			list = o.rule.launches(o, x)
		} else {
			list = append(list, o.fused(x))
		}
		for _, l := range list {
			if err := add(&s.step, what, l.op, l.args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// fused is the one op of a rule on a stretch: hyper, weight, gradient and states, of which all but the gradient are updated in place.
func (o *Optimizer) fused(r stretch) launch {
	v := npu.D(npu.F32, int(r.elems))
	op := o.rule.op(&o.cfg, &o.cfg.Groups[r.group])
	op.In, op.Out = []npu.Desc{npu.D(npu.F32, o.rule.width), v, v}, []npu.Desc{v}
	for range r.states {
		op.In, op.Out = append(op.In, v), append(op.Out, v)
	}
	args := append([]npu.Ptr{r.hyper, r.w, r.g}, r.states...)
	return launch{op, append(append(args, r.w), r.states...)}
}

// larsLaunches measures weight and gradient first, where the stretch adapts.
func larsLaunches(o *Optimizer, r stretch) []launch {
	var list []launch
	sw, sg := r.sums, r.sums.At(16)
	if o.rule.adapted(&o.cfg, r.group) {
		list = []launch{{sumSqOp(r.elems), []npu.Ptr{r.w, sw}}, {sumSqOp(r.elems), []npu.Ptr{r.g, sg}}}
	}
	step, sums := o.fused(r), npu.D(npu.F64, 2)
	n := len(step.op.In)
	step.op.In = append(step.op.In, sums, sums)
	step.args = slices.Insert(step.args, n, sw, sg)
	return append(list, step)
}

func sumSqOp(elems int64) npu.Op {
	return npu.Op{Kind: npu.SumSq, Attrs: npu.Attrs{}, In: []npu.Desc{npu.D(npu.F32, int(elems))}, Out: []npu.Desc{npu.D(npu.F64, 2)}}
}

// compile prepares an op once, however many segments of its size there are.
func (o *Optimizer) compile(op npu.Op) (npu.Kernel, error) {
	key := op.String()
	if k, ok := o.kernels[key]; ok {
		return k, nil
	}
	if !o.dev.Has(op.Kind, op.Attrs) {
		return nil, fmt.Errorf("device %s has no op %s{%s}", o.dev.Info().Name, op.Kind, op.Attrs)
	}
	op, err := o.dev.Choose(op)
	if err != nil {
		return nil, err
	}
	k, err := o.dev.Compile(op)
	if err != nil {
		return nil, err
	}
	o.kernels[key] = k
	return k, nil
}
