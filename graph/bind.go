package graph

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// Memory is what the caller gives a program: one pointer per weight and state, in the order of Weights and States.
type Memory struct {
	Weights []npu.Ptr
	Grads   []npu.Ptr // nil for a program without a backward pass; the nil Ptr for weights without a gradient
	States  []npu.Ptr
	Scratch npu.Ptr // of Scratch() bytes; nil: the program allocates its own
}

// Bind fixes all memory and prepares every launch. Inputs and outputs are allocated here; see Input and Output.
func (p *Program) Bind(m Memory) error {
	if p.bound {
		return fmt.Errorf("graph: the program is already bound")
	}
	pl := p.plan
	if len(m.Weights) != len(pl.Weights) || len(m.States) != len(pl.States) || (m.Grads != nil && len(m.Grads) != len(pl.Weights)) {
		return fmt.Errorf(
			"graph: bind: %d weights, %d gradients, %d states given for %d weights and %d states",
			len(m.Weights),
			len(m.Grads),
			len(m.States),
			len(pl.Weights),
			len(pl.States),
		)
	}
	if m.Scratch.IsNil() {
		b, err := p.alloc(p.Scratch())
		if err != nil {
			return err
		}
		m.Scratch = npu.Ptr{Buf: b}
	}
	if err := p.place(m); err != nil {
		return err
	}
	var err error
	if p.write, err = p.segments(m.Scratch, false); err != nil {
		return err
	}
	if p.stage != nil {
		if p.add, err = p.segments(m.Scratch, true); err != nil {
			return err
		}
	}
	p.bound = true
	return nil
}

func (p *Program) alloc(n int64) (npu.Buffer, error) {
	b, err := p.dev.Alloc(max(n, plan.Align))
	if err != nil {
		return nil, fmt.Errorf("graph: %d bytes on %s: %w", n, p.dev.Info().Name, err)
	}
	p.bufs = append(p.bufs, b)
	return b, nil
}

// place finds the pointer of every tensor.
func (p *Program) place(m Memory) error {
	pl := p.plan
	p.ptr = make([]npu.Ptr, len(pl.Tensors))
	for i, id := range pl.States {
		p.ptr[id] = m.States[i]
	}
	for i, w := range pl.Weights {
		p.ptr[w.Value] = m.Weights[i]
		if w.Grad == plan.None {
			continue
		}
		if m.Grads == nil || m.Grads[i].IsNil() {
			return fmt.Errorf("graph: bind: no memory for the gradient of %q", w.Name)
		}
		p.ptr[w.Grad] = m.Grads[i]
		if p.adders[i] != nil {
			if p.stage == nil {
				p.stage = make([]npu.Ptr, len(pl.Weights))
			}
			p.stage[i] = m.Scratch.At(pl.Tensors[w.Grad].Offset)
		}
	}
	own := append([]plan.ID{}, pl.Inputs...)
	for _, o := range pl.Outputs {
		own = append(own, o.Value)
	}
	for _, id := range own {
		if !p.ptr[id].IsNil() {
			continue // one value under two output names
		}
		b, err := p.alloc(pl.Tensors[id].Bytes)
		if err != nil {
			return err
		}
		p.ptr[id] = npu.Ptr{Buf: b}
	}
	for i := range pl.Tensors {
		id := plan.ID(i)
		if p.ptr[id].IsNil() && pl.Tensors[id].Place == plan.Arena {
			p.ptr[id] = m.Scratch.At(pl.Tensors[id].Offset)
		}
	}
	for i := range pl.Tensors {
		if r := pl.Memory(plan.ID(i)); r != plan.ID(i) {
			p.ptr[i] = p.ptr[r]
		}
	}
	return nil
}

// where is the pointer of a tensor; while gradients accumulate, a gradient is first written beside its memory.
func (p *Program) where(id plan.ID, add bool) npu.Ptr {
	if id == plan.None {
		return npu.Ptr{}
	}
	if add {
		if w, ok := p.weightOf[p.plan.Memory(id)]; ok { // also where it is read under another shape
			return p.stage[w]
		}
	}
	return p.ptr[id]
}

// segments binds all launches, in runs that end where the host has something to do.
func (p *Program) segments(scratch npu.Ptr, add bool) ([]segment, error) {
	cuts := make([][]int, len(p.plan.Steps))
	if at := p.forwardEnd(); at >= 0 {
		cuts[at] = append(cuts[at], Forward)
	}
	for k, group := range p.groups {
		last := p.lastReady(group)
		if last < 0 {
			return nil, fmt.Errorf("graph: group %d has no weight with a gradient", k)
		}
		cuts[last] = append(cuts[last], k)
	}
	var out []segment
	cur := segment{}
	p.once = nil
	flush := func() { out, cur = append(out, cur), segment{} }
	for si := range p.plan.Steps {
		s := &p.plan.Steps[si]
		if s.Host != nil {
			if add {
				for _, o := range s.Out {
					if _, isGrad := p.weightOf[o]; isGrad {
						return nil, fmt.Errorf("graph: %s of %q runs on the host and computes a gradient, so accumulation is not possible", s.Op.Kind, s.Name)
					}
				}
			}
			cur.host = p.hostCall(s, add)
			flush()
		} else if err := p.launch(&cur, si, scratch, add); err != nil {
			return nil, err
		}
		if si == p.plan.Once-1 {
			p.once, cur.batch = cur.batch, nil
		}
		if len(cuts[si]) > 0 {
			cur.ready = cuts[si]
			flush()
		}
	}
	if len(cur.batch) > 0 {
		flush()
	}
	return out, nil
}

// lastReady is the step after which all gradients of a group are complete, -1 where it has none.
func (p *Program) lastReady(group []int) int {
	last := -1
	for _, w := range group {
		if p.plan.Weights[w].Grad != plan.None {
			last = max(last, p.plan.Weights[w].Ready)
		}
	}
	return last
}

// Forward is the group that Run reports when all outputs are computed: loss, count and metrics may be read from then on.
const Forward = -1

// forwardEnd is the last step that makes an output, -1 where none is made.
func (p *Program) forwardEnd() int {
	end := -1
	for _, o := range p.plan.Outputs {
		end = max(end, p.plan.Tensors[o.Value].First)
	}
	return end
}

func (p *Program) launch(seg *segment, si int, scratch npu.Ptr, add bool) error {
	s := &p.plan.Steps[si]
	args := make([]npu.Ptr, 0, len(s.In)+len(s.Out))
	for _, id := range s.In {
		args = append(args, p.where(id, add))
	}
	for _, id := range s.Out {
		args = append(args, p.where(id, add))
	}
	l, err := p.kernels[si].Bind(args, scratch.At(s.WorkAt))
	if err != nil {
		return fmt.Errorf("graph: bind step %d, %s of %q: %w", si, s.Op.Kind, s.Name, err)
	}
	seg.batch = append(seg.batch, l)
	if !add {
		return nil
	}
	behind := scratch.At((p.plan.Arena + plan.Align - 1) / plan.Align * plan.Align)
	for _, id := range s.Out {
		w, ok := p.weightOf[id]
		if !ok {
			continue
		}
		acc := p.ptr[id]
		if l, err = p.adders[w].Bind([]npu.Ptr{acc, p.stage[w], acc}, behind); err != nil {
			return fmt.Errorf("graph: bind accumulation of %q: %w", p.plan.Weights[w].Name, err)
		}
		seg.batch = append(seg.batch, l)
	}
	return nil
}

// hostStep refuses a step that runs on the host, where a device keeps its memory from the host.
func (p *Program) hostStep(s *plan.Step) error {
	info := p.dev.Info()
	if !info.Separate {
		return nil
	}
	return fmt.Errorf("graph: %s of %q has no kernel and would run on the host, which cannot access the memory of %s\n"+
		"hint: use operations that have kernels (package graph lists them), or compute this on the host before the batch", s.Op.Attrs.Str("op"), s.Name, info.Name)
}

// hostCall makes the closure for a step that runs on the host. It needs memory that the host can reach.
func (p *Program) hostCall(s *plan.Step, add bool) func() error {
	return func() error {
		in, out := make([][]byte, len(s.In)), make([][]byte, len(s.Out))
		for i, id := range s.In {
			in[i] = p.host(id, add)
		}
		for i, id := range s.Out {
			if id != plan.None {
				out[i] = p.host(id, add)
			}
		}
		for _, b := range append(in, out...) {
			if b == nil {
				return fmt.Errorf("graph: %s of %q has no kernel, and the host cannot reach the memory of %s", s.Op.Kind, s.Name, p.dev.Info().Name)
			}
		}
		if err := s.Host(in, out); err != nil {
			return fmt.Errorf("graph: %s of %q on the host: %w", s.Op.Kind, s.Name, err)
		}
		return nil
	}
}

// host is the memory of a tensor (see where) as the host sees it, nil where it cannot.
func (p *Program) host(id plan.ID, add bool) []byte {
	q := p.where(id, add)
	h := q.Buf.Host()
	if h == nil {
		return nil
	}
	return h[q.Off : q.Off+p.plan.Tensors[id].Bytes]
}

// Input finds an input by name: where to write it, and what it is. ok is false where the program does not read it.
func (p *Program) Input(name string) (at npu.Ptr, d npu.Desc, ok bool) {
	for _, id := range p.plan.Inputs {
		if p.plan.Tensors[id].Name == name {
			return p.ptr[id], p.plan.Tensors[id].Desc, true
		}
	}
	return npu.Ptr{}, npu.Desc{}, false
}

// Output finds an output by name.
func (p *Program) Output(name string) (at npu.Ptr, d npu.Desc, ok bool) {
	for _, o := range p.plan.Outputs {
		if o.Name == name {
			return p.ptr[o.Value], p.plan.Tensors[o.Value].Desc, true
		}
	}
	return npu.Ptr{}, npu.Desc{}, false
}

// Run enqueues one pass. With add, gradients are added to their memory, else they overwrite it. After the launches that complete a group's gradients
// were enqueued, ready(group) is called on this goroutine: record an event on the stream there; ready(Forward) comes when the outputs are complete. Run
// allocates nothing.
func (p *Program) Run(s npu.Stream, add bool, ready func(group int) error) error {
	if !p.bound {
		return fmt.Errorf("graph: run before Bind")
	}
	if len(p.once) > 0 && !p.prepared {
		return fmt.Errorf("graph: run before Prepare, which a program with constant weights requires")
	}
	segs := p.write
	if add {
		if segs = p.add; segs == nil {
			return fmt.Errorf("graph: the program was compiled without Options.Accumulate")
		}
	}
	for i := range segs {
		g := &segs[i]
		if len(g.batch) > 0 {
			if err := s.Run(g.batch); err != nil {
				return err
			}
		}
		if g.host != nil {
			if err := s.Do(g.host); err != nil {
				return err
			}
		}
		for _, k := range g.ready {
			if ready == nil {
				break
			}
			if err := ready(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Prepare enqueues what a program with constant weights (Options.Constant) makes of them once: call it before the first Run, and again when
// the weights were changed.
func (p *Program) Prepare(s npu.Stream) error {
	if !p.bound {
		return fmt.Errorf("graph: prepare before Bind")
	}
	p.prepared = true
	if len(p.once) == 0 {
		return nil
	}
	return s.Run(p.once)
}

// Launches counts what one pass puts on the stream.
func (p *Program) Launches() int {
	n := 0
	for _, g := range p.write {
		n += len(g.batch)
		if g.host != nil {
			n++
		}
	}
	return n
}

// RunSync runs one pass and waits for it: for tests and small tools.
func (p *Program) RunSync(ctx context.Context, s npu.Stream) error {
	if err := p.Run(s, false, nil); err != nil {
		return err
	}
	return s.Sync(ctx)
}
