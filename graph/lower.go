package graph

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// Lower turns the graph into plain data: calls in the order of creation, pruned to what outputs and gradients need. It calls Grad where a graph for
// training has a loss and the model did not. Every rank that ran the same builder code has the same result.
func (b *Builder) Lower() (*plan.Graph, error) {
	if b.outside() && b.training && b.loss != nil && !b.grad.done {
		_ = b.Grad() // sticky
	}
	if b.err != nil {
		return nil, b.err
	}
	l := &lowering{
		b: b, g: &plan.Graph{}, builtins: map[*Node]lowered{}, live: map[*Node]bool{}, wanted: map[*Node]bool{}, id: map[*Node]plan.ID{},
	}
	mu.Lock()
	err := l.run()
	mu.Unlock()
	if err != nil {
		b.Failf("lower: %w", err)
		return nil, b.err
	}
	return l.g, nil
}

// lowering is one pass over the nodes.
type lowering struct {
	b        *Builder
	g        *plan.Graph
	builtins map[*Node]lowered
	live     map[*Node]bool // its call runs
	wanted   map[*Node]bool // its value is read
	id       map[*Node]plan.ID
}

func (l *lowering) run() error {
	b := l.b
	for _, in := range b.inputs {
		l.leaf(in.name, plan.Input, in.desc)
	}
	for _, p := range b.params {
		l.leaf(p.Name, plan.Param, npu.D(npu.F32, p.Shape...))
	}
	for _, s := range b.states {
		l.leaf(s.Name, plan.State, npu.D(npu.F32, s.Shape...))
	}
	for n, f := range b.leaves { // the values were added above, in order
		if f.kind != leafConst {
			l.id[n] = l.byName(f.name)
		}
	}
	if err := l.mark(); err != nil {
		return err
	}
	for _, n := range b.g.AllNodes() {
		if err := l.emit(n); err != nil {
			return err
		}
	}
	for _, o := range b.outputs {
		l.g.Outputs = append(l.g.Outputs, plan.Output{Name: o.name, Value: l.id[o.node]})
	}
	for _, p := range b.params { // in evaluation, and where frozen, without a gradient
		t := plan.Trained{Param: l.id[p.Node], Grad: plan.None}
		if g := b.grad.of[p]; g != nil {
			t.Grad = l.id[g]
		}
		l.g.Trained = append(l.g.Trained, t)
	}
	l.fullGradients()
	return l.g.Check()
}

func (l *lowering) leaf(name string, r plan.Role, d npu.Desc) {
	l.g.Add(plan.Value{Name: name, Role: r, Desc: d})
}

func (l *lowering) byName(name string) plan.ID {
	for i := range l.g.Values {
		if l.g.Values[i].Name == name {
			return plan.ID(i)
		}
	}
	return plan.None
}

// mark finds what outputs and gradients need, from the last node to the first: creation order is a topological order.
func (l *lowering) mark() error {
	want := func(n *Node) { l.live[n], l.wanted[n] = true, true }
	for _, o := range l.b.outputs {
		want(o.node)
	}
	for _, g := range l.b.grad.of {
		want(g)
	}
	nodes := l.b.g.AllNodes()
	at := make(map[*Node]int, len(nodes))
	for i, n := range nodes {
		at[n] = i
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if !l.live[n] || n.Op() == nil {
			continue
		}
		kids := children(n)
		if p, ok := n.Op().(*pick); ok {
			l.live[kids[0]] = true
			if state, ok := p.main.kind.StateOf(p.main.attrs, p.i); ok {
				return fmt.Errorf("%s %s: output %d is the state %q itself; use the state's node", p.main.kind.Name, where(p.main), p.i, p.main.kids[state].Name())
			}
			continue
		}
		if _, own := n.Op().(*call); !own {
			if by, bad := refused[builtinName(n)]; bad {
				return fmt.Errorf("built-in gorgonia op %s (node %q) is incorrect or silently merged\nhint: use %s", n.Op(), n.Name(), by)
			}
			if low, ok := lowerBuiltin(n); ok {
				l.builtins[n], kids = low, low.in
			}
		}
		for _, k := range kids {
			if at[k] >= i {
				return fmt.Errorf("node %q is older than its input %q", n.Name(), k.Name())
			}
			want(k)
		}
	}
	return nil
}

func (l *lowering) emit(n *Node) error {
	if !l.live[n] {
		return nil
	}
	switch o := n.Op().(type) {
	case nil:
		return l.input(n)
	case *pick:
		return nil // its call made the value
	case *call:
		return l.call(n, o)
	}
	d, err := descOf(n)
	if err != nil {
		return err
	}
	c := plan.Call{Back: l.b.grad.done && l.b.grad.start > 0 && n.ID() >= int64(l.b.grad.start)}
	kids := children(n)
	if low, ok := l.builtins[n]; ok {
		c.Kind, c.Attrs, kids = low.kind, low.attrs, low.in
	} else if c, err = l.host(n, kids, d, c); err != nil {
		return err
	}
	if c.In, err = l.inputs(n, kids); err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = l.nameBy(c.In)
	}
	l.id[n] = l.g.Add(plan.Value{Name: c.Name, Desc: d})
	c.Out = []plan.ID{l.id[n]}
	l.g.Calls = append(l.g.Calls, c)
	return nil
}

// input handles nodes without an op: leaves are known, constants become calls.
func (l *lowering) input(n *Node) error {
	f := l.b.leaves[n]
	if f == nil {
		return fmt.Errorf("the input %q was made by Gorgonia, not by this Builder, so it cannot be set\nhint: use Builder.Input", n.Name())
	}
	if f.kind != leafConst {
		return nil
	}
	l.id[n] = l.g.Add(plan.Value{Desc: f.desc})
	l.g.Calls = append(l.g.Calls, plan.Call{
		Kind: npu.Fill, Attrs: npu.Attrs{"value": f.value, "shape": []int(f.desc.Shape), "dtype": f.desc.DType.String()}, Out: []plan.ID{l.id[n]},
	})
	return nil
}

// call emits a call with all its outputs; unread ones are None, states are updated in place.
func (l *lowering) call(n *Node, o *call) error {
	in, err := l.inputs(n, o.kids)
	if err != nil {
		return err
	}
	c := plan.Call{Kind: o.kind.Name, Attrs: o.attrs, In: in, Name: o.path, Block: o.block, Back: o.back, Out: make([]plan.ID, len(o.out))}
	for i, d := range o.out {
		c.Out[i] = plan.None
		node := n
		if i > 0 {
			node = o.picks[i]
		}
		if s, ok := o.kind.StateOf(o.attrs, i); ok {
			if l.g.Values[in[s]].Role != plan.State {
				return fmt.Errorf("%s %s: input %d must be made by Builder.State, because it is updated in place", o.kind.Name, where(o), s)
			}
			c.Out[i] = in[s]
			if i == 0 { // read by the node of the call, so that readers come after it
				l.id[n] = in[s]
			}
		} else if i == 0 || node != nil && l.wanted[node] { // kernels may leave out any output but the first
			c.Out[i] = l.g.Add(plan.Value{Name: o.path, Desc: d})
			l.id[node] = c.Out[i]
		}
	}
	l.g.Calls = append(l.g.Calls, c)
	return nil
}

func (l *lowering) inputs(n *Node, kids []*Node) ([]plan.ID, error) {
	var in []plan.ID
	for _, k := range kids {
		id, ok := l.id[k]
		if !ok {
			return nil, fmt.Errorf("node %q reads %q, which no node produces", n.Name(), k.Name())
		}
		in = append(in, id)
	}
	return in, nil
}

// host falls back to the op's own code.
func (l *lowering) host(n *Node, kids []*Node, d npu.Desc, c plan.Call) (plan.Call, error) {
	in := make([]npu.Desc, len(kids))
	for i, k := range kids {
		var err error
		if in[i], err = descOf(k); err != nil {
			return c, err
		}
		if !hostable(in[i].DType) {
			return c, fmt.Errorf("built-in gorgonia op %s does not support %s\nhint: cast its input to f32", n.Op(), in[i].DType)
		}
	}
	if !hostable(d.DType) {
		return c, errors.New("built-in gorgonia op " + n.Op().String() + " gives " + d.DType.String() + ", which the host fallback does not support")
	}
	c.Kind, c.Attrs, c.Host = "host", npu.Attrs{"op": n.Op().String()}, hostCall(n.Op(), in, d)
	l.b.warnf("graph: the built-in gorgonia op %s (node %d, %q) has no kernel and runs on the host, with a copy each way", n.Op(), n.ID(), n.Name())
	return c, nil
}

// nameBy names a call without a layer after the first input that a layer made.
func (l *lowering) nameBy(in []plan.ID) string {
	for _, id := range in {
		if l.g.Values[id].Role == plan.Temp && l.g.Values[id].Name != "" {
			return l.g.Values[id].Name
		}
	}
	return ""
}

// fullGradients makes products and sums that end in a parameter's gradient give float32 even where mixed precision
// computes them from 16-bit operands.
func (l *lowering) fullGradients() {
	maker := map[plan.ID]int{}
	for i, c := range l.g.Calls {
		for _, o := range c.Out {
			maker[o] = i
		}
	}
	var full func(v plan.ID)
	full = func(v plan.ID) {
		i, ok := maker[v]
		if !ok || !l.g.Calls[i].Back || v == plan.None {
			return
		}
		c := &l.g.Calls[i]
		switch c.Kind {
		case npu.MatMul, npu.Reduce:
			c.Attrs = c.Attrs.Clone()
			c.Attrs["out"] = "f32"
		case npu.Reshape, npu.Transpose:
			full(c.In[0])
		case npu.Binary:
			if c.Attrs.Str("fn") == "add" { // a parameter that is used in several places
				full(c.In[0])
				full(c.In[1])
			}
		}
	}
	for _, t := range l.g.Trained {
		full(t.Grad)
	}
}
