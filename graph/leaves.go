package graph

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// Input declares a tensor that the caller sets before each run. Its name does not depend on the scope.
func (b *Builder) Input(name string, t npu.DType, shape ...int) *Node {
	n := b.leaf(name, &leaf{desc: npu.D(t, shape...), kind: leafInput})
	if b.err == nil {
		b.inputs = append(b.inputs, b.leaves[n])
	}
	return n
}

// ParamOption changes how a parameter is trained.
type ParamOption func(*Param)

// NoDecay exempts the parameter from weight decay.
func NoDecay() ParamOption { return func(p *Param) { p.NoDecay = true } }

// Group puts the parameter into a group that whoever trains it knows by name: train.ParamGroup, with a learning rate and a decay of its own.
func Group(name string) ParamOption { return func(p *Param) { p.Group = name } }

// Frozen keeps the parameter as it is: no gradient is built for it.
func Frozen() ParamOption { return func(p *Param) { p.Frozen = true } }

// Param declares a float32 tensor that is trained. Its full name is the scope path, a dot and name.
func (b *Builder) Param(name string, shape npu.Shape, init Init, opts ...ParamOption) *Node {
	p := &Param{Name: join(b.path, name), Shape: shape.Clone(), Init: init}
	for _, o := range opts {
		o(p)
	}
	for _, f := range b.onParam {
		if err := f(p); err != nil && b.err == nil {
			b.Failf("parameter %q %w", p.Name, err)
		}
	}
	if err := init.check(p.Shape); err != nil && b.err == nil {
		b.Failf("parameter %q: %w", p.Name, err)
	}
	p.Node = b.leaf(p.Name, &leaf{desc: npu.D(npu.F32, p.Shape...), kind: leafParam, param: p})
	if b.err == nil {
		b.params = append(b.params, p)
	}
	return p.Node
}

// State declares a float32 tensor that ops update in place during a run, and the value that it starts with.
func (b *Builder) State(name string, shape npu.Shape, value float32) *Node {
	s := &State{Name: join(b.path, name), Shape: shape.Clone(), Value: value}
	s.Node = b.leaf(s.Name, &leaf{desc: npu.D(npu.F32, s.Shape...), kind: leafState})
	if b.err == nil {
		b.states = append(b.states, s)
	}
	return s.Node
}

// Const is a tensor filled with one value.
func (b *Builder) Const(t npu.DType, value float64, shape ...int) *Node {
	if math.IsNaN(value) {
		b.Failf("a constant is NaN")
	}
	b.seq++
	return b.leaf(fmt.Sprintf("const-%d", b.seq), &leaf{desc: npu.D(t, shape...), kind: leafConst, value: value})
}

// Params lists the parameters in the order of declaration.
func (b *Builder) Params() []*Param { return b.params }

// States lists the states in the order of declaration.
func (b *Builder) States() []*State { return b.states }

// leaf makes a Gorgonia input. Gorgonia merges inputs of equal name, so a name is taken once.
func (b *Builder) leaf(name string, l *leaf) *Node {
	if !b.outside() {
		return b.placeholder
	}
	l.name = name
	switch {
	case !validName(name):
		b.Failf("name %q: want letters, digits, _, - and . between them", name)
	case b.taken[name]:
		b.Failf("the name %q is already used\nhint: put the second one in its own scope (Builder.In)", name)
	case l.desc.DType.Size() == 0:
		b.Failf("%q: dtype %v", name, l.desc.DType)
	case len(l.desc.Shape) > 8:
		b.Failf("%q: shape %v has more than 8 dimensions", name, l.desc.Shape)
	}
	for _, n := range l.desc.Shape {
		if n < 1 {
			b.Failf("%q: shape %v: every dimension must be at least 1", name, l.desc.Shape)
		}
	}
	if b.err != nil {
		return b.placeholder
	}
	l.desc.Shape = l.desc.Shape.Clone()
	mu.Lock()
	defer mu.Unlock()
	n := gorgonia.NewTensor(b.g, dtypes[l.desc.DType], len(l.desc.Shape), gorgonia.WithShape(l.desc.Shape...), gorgonia.WithName(name))
	if _, merged := b.leaves[n]; merged || n.Name() != name || n.Op() != nil {
		b.Failf("%q was merged with the node %q of this graph\nhint: give it another name", name, n.Name())
		return b.placeholder
	}
	b.taken[name], b.leaves[n] = true, l
	return n
}

// Output names a value that the caller reads after each run. Its name does not depend on the scope.
func (b *Builder) Output(name string, n *Node) {
	if b.err != nil {
		return
	}
	if !validName(name) {
		b.Failf("output name %q: want letters, digits, _, - and . between them", name)
	}
	for _, o := range b.outputs {
		if o.name == name {
			b.Failf("output %q is named twice", name)
		}
	}
	if b.owns(n, "output "+name) {
		b.outputs = append(b.outputs, output{name, n})
	}
}

// owns checks that a node may be used here.
func (b *Builder) owns(n *Node, what string) bool {
	switch {
	case b.err != nil:
	case n == nil:
		b.Failf("%s is a %w\nhint: %s", what, ErrNil, nilHint)
	case n.Graph() != b.g:
		b.Failf("%s, %q, belongs to another graph", what, n.Name())
	case n == b.placeholder:
		b.Failf("%s is a placeholder left by an earlier error", what)
	}
	return b.err == nil
}
