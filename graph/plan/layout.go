package plan

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// layouter walks the graph once in order and asks the target, op by op, which layouts it wants.
//
// Note [virtual converts]: a Convert call of the graph does not make a step. Its result is materialised when a
// kernel reads it, in the layout that this kernel wants, straight from the source: one pass instead of a cast and a reorder.
//
// Note [master layout]: a parameter's own layout is decided last: it is the one that its gradient's kernel writes, so that
// optimizer state, gradient and parameter are flat memory of one order. Forward and backward kernels that want
// another order get a conversion each, just before use, in arena memory that lives as long as they need it.
type layouter struct {
	g    *Graph
	t    Target
	p    *Plan
	o    Options
	home []ID // graph value → its first tensor, None while virtual
	src  []ID // graph value → graph value that it converts, None
	made map[madeKey]ID
	err  error
}

type madeKey struct {
	v      ID
	layout npu.Layout
	back   bool
}

func layout(g *Graph, t Target, o Options) (*Plan, error) {
	l := &layouter{g: g, t: t, p: &Plan{}, o: o, made: map[madeKey]ID{}}
	l.home, l.src = make([]ID, len(g.Values)), make([]ID, len(g.Values))
	for i, v := range g.Values {
		l.home[i], l.src[i] = None, None
		if v.Role == Temp {
			continue
		}
		d := v.Desc
		if v.Role == Param && len(d.Shape) > 1 {
			d.Layout = npu.Any
			if given, ok := o.Layouts[v.Name]; ok {
				d.Layout = given
			}
		}
		id := l.tensor(Tensor{Name: v.Name, Desc: d, Role: v.Role, Place: Bound})
		l.home[i] = id
		switch v.Role {
		case Input:
			l.p.Inputs = append(l.p.Inputs, id)
		case State:
			l.p.States = append(l.p.States, id)
		}
	}
	for i := range g.Calls {
		c := &g.Calls[i]
		if err := l.call(c); err != nil {
			return nil, fmt.Errorf("plan: layout of %s %q: %w", c.Kind, c.Name, err)
		}
	}
	for _, o := range g.Outputs {
		id := l.owned(l.get(o.Value, npu.Plain, "", false))
		l.p.Tensors[id].Place = Bound
		l.p.Outputs = append(l.p.Outputs, Output{o.Name, id})
	}
	l.params()
	if l.err != nil {
		return nil, l.err
	}
	l.elide()
	return l.p, nil
}

func (l *layouter) tensor(t Tensor) ID {
	t.alias = None
	l.p.Tensors = append(l.p.Tensors, t)
	return ID(len(l.p.Tensors) - 1)
}

func (l *layouter) role(v ID) Role { return l.g.Values[v].Role }

// root follows virtual converts to the value that really exists.
func (l *layouter) root(v ID) ID {
	for l.src[v] != None {
		v = l.src[v]
	}
	return v
}

// current is the layout to offer for a value: what it has, or Any where it can have each at no extra cost.
func (l *layouter) current(v ID) npu.Layout {
	r := l.root(v)
	if len(l.g.Values[v].Desc.Shape) < 2 {
		return npu.Plain
	}
	if l.role(r) == Param || (r != v && l.role(r) == Input) {
		return npu.Any
	}
	return l.p.Tensors[l.home[r]].Desc.Layout
}

// get returns a tensor that holds v in the given layout, adding a conversion where there is none yet.
func (l *layouter) get(v ID, want npu.Layout, name string, back bool) ID {
	if h := l.home[v]; h != None && l.p.Tensors[h].Desc.Layout == want {
		return h
	}
	k := madeKey{v, want, back && l.role(l.root(v)) == Param} // Note [master layout]
	if id, ok := l.made[k]; ok {
		return id
	}
	from := l.home[l.root(v)]
	d := l.g.Values[v].Desc.With(want)
	out := l.tensor(Tensor{Name: l.g.Values[v].Name, Desc: d})
	o := npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": d.DType.String()}, In: []npu.Desc{l.p.Tensors[from].Desc}, Out: []npu.Desc{d}}
	l.p.Steps = append(l.p.Steps, Step{Op: o, In: []ID{from}, Out: []ID{out}, Name: name, Back: back})
	l.made[k] = out
	return out
}

func (l *layouter) call(c *Call) error {
	switch {
	case c.Host != nil:
		return l.host(c)
	case c.Kind == npu.Convert:
		l.src[c.Out[0]] = c.In[0]
		return nil
	case c.Kind == npu.Reshape:
		in := l.get(c.In[0], npu.Plain, c.Name, c.Back)
		l.home[c.Out[0]] = l.tensor(Tensor{Name: c.Name, Desc: l.g.Values[c.Out[0]].Desc})
		l.p.Tensors[l.home[c.Out[0]]].alias = in
		return nil
	}
	k, err := op.Lookup(c.Kind)
	if err != nil {
		return err
	}
	o := npu.Op{Kind: c.Kind, Attrs: c.Attrs, In: make([]npu.Desc, len(c.In))}
	for i, in := range c.In {
		o.In[i] = l.g.Values[in].Desc
	}
	if o.Out, err = k.Infer(c.Attrs, o.In); err != nil {
		return err
	}
	for i, in := range c.In {
		o.In[i].Layout = l.current(in)
	}
	for j := range o.Out {
		if len(o.Out[j].Shape) > 1 {
			o.Out[j].Layout = npu.Any
		}
	}
	if o, err = l.t.Choose(l.choices(o)); err != nil {
		return err
	}
	s := Step{Op: o, Name: c.Name, Back: c.Back, In: make([]ID, len(c.In)), Out: make([]ID, len(o.Out))}
	for i, in := range c.In {
		s.In[i] = l.get(in, o.In[i].Layout, c.Name, c.Back)
	}
	for j := range s.Out {
		s.Out[j] = None
		if j >= len(c.Out) || c.Out[j] == None {
			if !k.MayBeNil(c.Attrs, j) { // unwanted, yet kernels write it: memory for the length of this step
				s.Out[j] = l.tensor(Tensor{Name: c.Name, Desc: o.Out[j]})
			}
			continue
		}
		v := c.Out[j]
		if l.role(v) == State {
			s.Out[j] = l.home[v]
			continue
		}
		l.home[v] = l.tensor(Tensor{Name: c.Name, Desc: o.Out[j]})
		s.Out[j] = l.home[v]
	}
	l.p.Steps = append(l.p.Steps, s)
	return nil
}

// choices adds the algorithm that the options name for an op.
func (l *layouter) choices(o npu.Op) npu.Op {
	if l.o.Algorithm != nil {
		if a := l.o.Algorithm(o); a != npu.Direct {
			o = o.WithAlgorithm(a)
		}
	}
	return o
}

func (l *layouter) host(c *Call) error {
	s := Step{Op: npu.Op{Kind: c.Kind, Attrs: c.Attrs}, Name: c.Name, Back: c.Back, Host: c.Host}
	for _, in := range c.In {
		id := l.get(in, npu.Plain, c.Name, c.Back)
		s.In, s.Op.In = append(s.In, id), append(s.Op.In, l.p.Tensors[id].Desc)
	}
	for _, v := range c.Out {
		id := None
		if v != None {
			id = l.tensor(Tensor{Name: c.Name, Desc: l.g.Values[v].Desc})
			l.home[v] = id
			s.Op.Out = append(s.Op.Out, l.p.Tensors[id].Desc)
		}
		s.Out = append(s.Out, id)
	}
	l.p.Steps = append(l.p.Steps, s)
	return nil
}

// maker is the step that makes tensor id, -1 where none does.
func (l *layouter) maker(id ID) int {
	for i := range l.p.Steps {
		for _, o := range l.p.Steps[i].Out {
			if o == id {
				return i
			}
		}
	}
	return -1
}

// owned returns a tensor of the same content that a step makes and that shares memory with nothing, copying where needed.
func (l *layouter) owned(id ID) ID {
	t := l.p.Tensors[id]
	if t.Role == Temp && t.alias == None && t.Place == Arena && l.maker(id) >= 0 {
		return id
	}
	at := l.maker(id)
	if t.alias != None {
		at = l.maker(t.alias)
	}
	out := l.tensor(Tensor{Name: t.Name, Desc: t.Desc})
	o := npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": t.Desc.DType.String()}, In: []npu.Desc{t.Desc}, Out: []npu.Desc{t.Desc}}
	s := Step{Op: o, In: []ID{id}, Out: []ID{out}, Name: t.Name, Back: true}
	// Right after its maker, so that a gradient is ready as early as it can be.
	l.p.Steps = append(l.p.Steps[:at+1:at+1], append([]Step{s}, l.p.Steps[at+1:]...)...)
	return out
}

// params decides master layouts and gives every gradient its own memory. Note [master layout].
func (l *layouter) params() {
	for _, tr := range l.g.Trained {
		v := l.home[tr.Param]
		q := Weight{Name: l.g.Values[tr.Param].Name, Value: v, Grad: None}
		master := &l.p.Tensors[v]
		if tr.Grad != None {
			gl := npu.Plain
			if h := l.home[tr.Grad]; h != None {
				gl = l.p.Tensors[h].Desc.Layout
			}
			if master.Desc.Layout != npu.Any {
				gl = master.Desc.Layout
			}
			if len(l.g.Values[tr.Grad].Desc.Shape) < 2 {
				gl = npu.Plain
			}
			q.Grad = l.owned(l.get(tr.Grad, gl, q.Name, true))
			master = &l.p.Tensors[v] // owned may have grown the slice
			master.Desc.Layout = l.p.Tensors[q.Grad].Desc.Layout
			gt := &l.p.Tensors[q.Grad]
			gt.Place, gt.Name = Bound, q.Name+".grad"
			if !gt.Desc.Equal(master.Desc) {
				l.err = fmt.Errorf("plan: parameter %q is %v but its gradient is %v", q.Name, master.Desc, gt.Desc)
			}
		}
		l.p.Weights = append(l.p.Weights, q)
	}
	// Parameters without a gradient live as their first reader wants them.
	for i := range l.p.Tensors {
		t := &l.p.Tensors[i]
		if t.Role == Param && t.Desc.Layout == npu.Any {
			t.Desc.Layout = npu.Plain
			for _, s := range l.p.Steps {
				if s.Op.Kind == npu.Convert && s.In[0] == ID(i) && s.Op.Out[0].DType == t.Desc.DType {
					t.Desc.Layout = s.Op.Out[0].Layout
					break
				}
			}
		}
	}
}

// elide drops conversions that turned out to change nothing and fills in the layouts that were decided last.
func (l *layouter) elide() {
	same := make([]ID, len(l.p.Tensors))
	for i := range same {
		same[i] = ID(i)
	}
	out := l.p.Steps[:0]
	for _, s := range l.p.Steps {
		for i, in := range s.In {
			s.In[i] = same[in]
			if s.Op.Kind == npu.Convert && s.Host == nil {
				s.Op.In[i] = l.p.Tensors[s.In[i]].Desc
			}
		}
		if s.Op.Kind == npu.Convert && s.Host == nil && s.Op.In[0].Equal(s.Op.Out[0]) && l.p.Tensors[s.Out[0]].Place == Arena {
			same[s.Out[0]] = s.In[0]
			continue
		}
		out = append(out, s)
	}
	l.p.Steps = out
	for i := range l.p.Tensors {
		if a := l.p.Tensors[i].alias; a != None {
			l.p.Tensors[i].alias = same[a]
		}
	}
	for i := range l.p.Weights {
		if l.p.Weights[i].Grad != None {
			l.p.Weights[i].Ready = l.p.lastUse(l.p.Weights[i])
		}
	}
}

// lastUse is the last step that makes the weight's gradient, or reads it (where it is the gradient of something else too) or the weight, under
// whatever name: from then on others may sum the gradient over ranks in place, and overwrite the weight.
func (p *Plan) lastUse(w Weight) int {
	last := -1
	for si := range p.Steps {
		s := &p.Steps[si]
		if slices.Contains(s.Out, w.Grad) || slices.ContainsFunc(s.In, func(in ID) bool { m := p.Memory(in); return m == w.Grad || m == w.Value }) {
			last = si
		}
	}
	return last
}
