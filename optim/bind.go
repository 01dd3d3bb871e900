package optim

import (
	"fmt"

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

// planStep lists the launches that step one segment.
func (o *Optimizer) planStep(s *segment, add func(*[]npu.Launch, string, npu.Op, ...npu.Ptr) error) error {
	sum := 0
	for _, r := range s.runs {
		what := fmt.Sprintf("%s of %s, elements %d…%d", o.cfg.Rule, s.Name, r.off, r.off+r.elems)
		w, g := s.Weight.At(4*r.off), s.Grad.At(4*r.off)
		var states []npu.Ptr
		for _, st := range s.state {
			states = append(states, st.At(4*r.off))
		}
		args := append([]npu.Ptr{o.hyper.At(int64(hyperStride * r.group)), w, g}, states...)
		if o.rule.adapts {
			sw, sg := o.sums, o.sums.At(16)
			if !o.cfg.Groups[r.group].NoAdapt {
				sw, sg = s.sums.At(int64(32*sum)), s.sums.At(int64(32*sum+16))
				sum++
				if err := add(&s.step, what, sumSqOp(r.elems), w, sw); err != nil {
					return err
				}
				if err := add(&s.step, what, sumSqOp(r.elems), g, sg); err != nil {
					return err
				}
			}
			args = append(args, sw, sg)
		}
		args = append(append(args, w), states...)
		if err := add(&s.step, what, o.stepOp(r), args...); err != nil {
			return err
		}
	}
	return nil
}

// stepOp is the op of kinds.go that steps one run.
func (o *Optimizer) stepOp(r run) npu.Op {
	v, sums := npu.D(npu.F32, int(r.elems)), npu.D(npu.F64, 2)
	op := o.rule.op(&o.cfg, &o.cfg.Groups[r.group])
	op.In, op.Out = []npu.Desc{npu.D(npu.F32, o.rule.width), v, v}, []npu.Desc{v}
	for range o.rule.states(&o.cfg) {
		op.In, op.Out = append(op.In, v), append(op.Out, v)
	}
	if o.rule.adapts {
		op.In = append(op.In, sums, sums)
	}
	return op
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
