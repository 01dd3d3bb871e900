package plan

import (
	"cmp"
	"slices"

	"github.com/gotrain/gotrain/graph/op"
)

// Again is a result of the forward pass that the backward pass reads, and that is cheap to make a second time from what is kept anyway, right before it
// is read (selective recomputation, arXiv 2205.05198). The second kernel is the first one, on the same values, so the numbers are the same bit by bit.
type Again struct {
	Kind  string // of the op that makes it
	Name  string // of its layer
	Bytes int64  // memory that it holds from its making to its use
	Moved int64  // bytes that the second kernel reads and writes: what it costs
	FLOPs int64

	tensor ID
	step   Step // the second kernel, without Out
	before int  // step of the plan before which it runs
}

// again lists what could be made again, the least traffic per byte of memory first. No entry reads what another one drops, so each beginning of the list
// can be applied. The order depends on the plan alone.
func (p *Plan) again(t Target) []Again {
	a := &againer{p: p, t: t, readers: p.readers()}
	var all []Again
	for si := range p.Steps {
		if s := &p.Steps[si]; si >= p.Once && !s.Back && s.Host == nil {
			if c, ok := a.candidate(si); ok {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Again) int {
		return cmp.Compare(float64(x.Moved)/float64(x.Bytes), float64(y.Moved)/float64(y.Bytes))
	})
	read, dropped := map[ID]bool{}, map[ID]bool{}
	return slices.DeleteFunc(all, func(c Again) bool {
		if read[c.tensor] || slices.ContainsFunc(c.step.In, func(in ID) bool { return dropped[p.Memory(in)] }) {
			return true
		}
		dropped[c.tensor] = true
		for _, in := range c.step.In {
			read[p.Memory(in)] = true
		}
		return false
	})
}

type againer struct {
	p       *Plan
	t       Target
	readers [][]int // by tensor: the steps that read its memory, in order
}

// readers lists for each tensor the steps that read its memory, under whatever shape.
func (p *Plan) readers() [][]int {
	r := make([][]int, len(p.Tensors))
	for si := range p.Steps {
		for _, in := range p.Steps[si].In {
			if m := p.Memory(in); len(r[m]) == 0 || r[m][len(r[m])-1] != si {
				r[m] = append(r[m], si)
			}
		}
	}
	return r
}

// candidate describes how to make the first result of step si again. ok is false unless it is kept for the backward pass, and made of what that has anyway.
func (a *againer) candidate(si int) (c Again, ok bool) {
	s := &a.p.Steps[si]
	if len(s.Out) == 0 || s.Out[0] == None {
		return c, false
	}
	out := s.Out[0]
	if x := &a.p.Tensors[out]; x.Place != Arena || x.Role != Temp || x.alias != None {
		return c, false
	}
	at := a.firstBack(out)
	k, err := op.Lookup(s.Op.Kind)
	if err != nil || at < 0 {
		return c, false
	}
	again, args, ok := k.MakeAgain(s.Op)
	if !ok {
		return c, false
	}
	if again, err = a.t.Choose(again); err != nil {
		return c, false
	}
	c = Again{Kind: s.Op.Kind, Name: s.Name, Bytes: round(a.p.Tensors[out].Bytes), tensor: out}
	c.step = Step{Op: again, Name: s.Name, Back: true}
	for i, arg := range args {
		id := append(slices.Clone(s.In), s.Out...)[arg]
		if id == None || again.In[i].Layout != a.p.Tensors[id].Desc.Layout {
			return c, false // the kernel for the second time wants another layout
		}
		last := a.kept(id)
		if last < 0 {
			return c, false
		}
		at = min(at, last)
		c.step.In = append(c.step.In, id)
	}
	if !again.Out[0].Equal(a.p.Tensors[out].Desc) {
		return c, false
	}
	c.before = at
	c.Moved, c.FLOPs = op.Bytes(again), c.step.FLOPs()
	return c, true
}

// firstBack is the first step of the backward pass that reads a tensor, -1 where none does.
func (a *againer) firstBack(id ID) int {
	for _, si := range a.readers[id] {
		if a.p.Steps[si].Back {
			return si
		}
	}
	return -1
}

// kept is the last step that finds a tensor in memory without extending its life, -1 where the backward pass has lost it, or finds something else there.
func (a *againer) kept(id ID) int {
	m := a.p.Memory(id)
	switch a.p.Tensors[m].Role {
	case Param, Input:
		return len(a.p.Steps)
	case State:
		return -1
	}
	if r := a.readers[m]; len(r) > 0 && a.p.Steps[r[len(r)-1]].Back && a.p.Tensors[m].Place == Arena {
		return r[len(r)-1]
	}
	return -1
}

// apply returns the plan with the given results made again.
func (p *Plan) apply(t Target, list []Again) (*Plan, error) {
	q := *p
	q.inherited = nil
	q.Tensors = slices.Clone(p.Tensors)
	q.Weights = slices.Clone(p.Weights)
	for _, id := range p.inherited {
		q.Tensors[id].alias, q.Tensors[id].Place = None, Arena
	}
	before, to := map[int][]Step{}, map[ID]ID{}
	for _, c := range list {
		k, err := op.Lookup(c.step.Op.Kind)
		if err != nil {
			return nil, err
		}
		s := c.step
		s.Out = slices.Repeat([]ID{None}, len(s.Op.Out))
		for j, d := range s.Op.Out {
			if j == 0 || !k.MayBeNil(s.Op.Attrs, j) { // what nobody reads has memory for the length of the step
				q.Tensors = append(q.Tensors, Tensor{Name: c.Name, Desc: d, alias: None})
				s.Out[j] = ID(len(q.Tensors) - 1)
			}
		}
		to[c.tensor] = s.Out[0]
		before[c.before] = append(before[c.before], s)
	}
	for i := range p.Tensors { // reshapes of what is made again
		if n, ok := to[p.Memory(ID(i))]; ok && p.Tensors[i].alias != None {
			x := p.Tensors[i]
			x.alias = n
			q.Tensors = append(q.Tensors, x)
			to[ID(i)] = ID(len(q.Tensors) - 1)
		}
	}
	q.Steps = nil
	for i, s := range p.Steps {
		q.Steps = append(q.Steps, before[i]...)
		if s.Back {
			s.In = slices.Clone(s.In)
			rename(s.In, to)
		}
		q.Steps = append(q.Steps, s)
	}
	for i := range q.Weights {
		if q.Weights[i].Grad != None {
			q.Weights[i].Ready = q.lastUse(q.Weights[i])
		}
	}
	if err := q.measure(t); err != nil {
		return nil, err
	}
	q.Place()
	return &q, nil
}
