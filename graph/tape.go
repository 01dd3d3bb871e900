package graph

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// value is a node's output as gradient rules see it. The node of an output other than the first is made when it is used.
type value struct {
	b    *Builder
	n    *Node
	i    int
	desc npu.Desc
}

func (v value) Desc() npu.Desc { return v.desc }

func (v value) node() *Node {
	if v.i == 0 {
		return v.n
	}
	return v.b.pick(v.n, v.i)
}

func (b *Builder) ref(n *Node, i int) op.Ref {
	if c, ok := n.Op().(*call); ok {
		return value{b, n, i, c.out[i]}
	}
	d, err := descOf(n)
	if err != nil {
		b.Failf("%w", err)
	}
	return value{b, n, i, d}
}

// tape lets gradient rules build. mu is held.
type tape struct{ b *Builder }

func (t tape) Apply(kind string, attrs npu.Attrs, in ...op.Ref) ([]op.Ref, error) {
	k, err := op.Lookup(kind)
	if err != nil {
		return nil, err
	}
	nodes := make([]*Node, len(in))
	for i, r := range in {
		if r == nil {
			return nil, fmt.Errorf("%s: input %d is nil", kind, i)
		}
		nodes[i] = r.(value).node()
	}
	if kind == npu.Binary && attrs.Str("fn") == "mul" {
		for i, r := range in { // the seed 1 of Gorgonia's Grad
			if isOne(nodes[i]) && in[1-i].Desc().DType == r.Desc().DType {
				return []op.Ref{in[1-i]}, nil
			}
		}
	}
	n, err := t.b.add(k, attrs, nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	c := n.Op().(*call)
	out := make([]op.Ref, len(c.out))
	for i := range out {
		out[i] = t.b.ref(n, i)
	}
	return out, t.b.err
}

// isOne recognises Gorgonia's scalar constant 1.
func isOne(n *Node) bool {
	c, ok := n.Op().(interface{ Value() gorgonia.Value })
	if !ok || !n.IsScalar() {
		return false
	}
	switch v := c.Value().Data().(type) {
	case float32:
		return v == 1
	case float64:
		return v == 1
	}
	return false
}
