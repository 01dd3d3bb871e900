package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// rule is a Tape with a sticky error, so that a gradient reads like the formula.
type rule struct {
	t   Tape
	err error
}

// many adds a call and gives all outputs.
func (r *rule) many(kind string, a npu.Attrs, in ...Ref) []Ref {
	if r.err == nil {
		var out []Ref
		if out, r.err = r.t.Apply(kind, a, in...); r.err == nil {
			return out
		}
	}
	return make([]Ref, 8) // never read: each later step sees the error first
}

// do adds a call and gives its first output.
func (r *rule) do(kind string, a npu.Attrs, in ...Ref) Ref { return r.many(kind, a, in...)[0] }

func (r *rule) binary(fn string, a, b Ref) Ref { return r.do(npu.Binary, npu.Attrs{"fn": fn}, a, b) }
func (r *rule) mul(a, b Ref) Ref               { return r.binary("mul", a, b) }
func (r *rule) add(a, b Ref) Ref               { return r.binary("add", a, b) }
func (r *rule) unary(fn string, x Ref) Ref     { return r.do(npu.Unary, npu.Attrs{"fn": fn}, x) }

// affine is alpha*x + beta.
func (r *rule) affine(x Ref, alpha, beta float64) Ref {
	return r.do(npu.Unary, npu.Attrs{"fn": "affine", "alpha": alpha, "beta": beta}, x)
}

func (r *rule) sum(x Ref, axes []int, keep bool) Ref {
	return r.do(npu.Reduce, npu.Attrs{"fn": "sum", "axes": axes, "keep": keep}, x)
}

func (r *rule) reshape(x Ref, s npu.Shape) Ref {
	if r.err != nil || x.Desc().Shape.Equal(s) {
		return x
	}
	return r.do(npu.Reshape, npu.Attrs{"shape": []int(s)}, x)
}

func (r *rule) broadcast(x Ref, s npu.Shape) Ref {
	if r.err != nil || x.Desc().Shape.Equal(s) {
		return x
	}
	return r.do(npu.BroadcastTo, npu.Attrs{"shape": []int(s)}, x)
}

// unbroadcast sums g over the axes along which a tensor of shape s was repeated.
func (r *rule) unbroadcast(g Ref, s npu.Shape) Ref {
	if r.err != nil {
		return g
	}
	gs := g.Desc().Shape
	lead := len(gs) - len(s)
	var axes []int
	for i, n := range gs {
		if i < lead || (s[i-lead] == 1 && n != 1) {
			axes = append(axes, i)
		}
	}
	if len(axes) > 0 {
		g = r.sum(g, axes, false)
	}
	return r.reshape(g, s)
}

// masked is dy where the relu that was applied last let something through.
func (r *rule) masked(c Call) Ref {
	if !c.Attrs.Bool("relu") {
		return c.DOut
	}
	return r.do(npu.ReluBwd, nil, c.DOut, c.Out[0])
}

func (r *rule) done(g ...Ref) ([]Ref, error) {
	if r.err != nil {
		return nil, r.err
	}
	return g, nil
}

// axesBut lists the axes of a rank without one.
func axesBut(rank, axis int) []int {
	var a []int
	for i := range rank {
		if i != axis {
			a = append(a, i)
		}
	}
	return a
}

// only picks some attributes.
func only(a npu.Attrs, keys ...string) npu.Attrs {
	o := npu.Attrs{}
	for _, k := range keys {
		if v, ok := a[k]; ok {
			o[k] = v
		}
	}
	return o
}

// withShape adds a shape attribute.
func withShape(a npu.Attrs, key string, s npu.Shape) npu.Attrs {
	a = a.Clone()
	a[key] = []int(slices.Clone(s))
	return a
}

// elems counts the elements of a shape.
func elems(d npu.Desc) int64 { return d.Shape.Elems() }

// perElem is a FLOPs rule: n operations for each element of the first input.
func perElem(n int64) func(npu.Op) int64 {
	return func(o npu.Op) int64 { return n * elems(o.In[0]) }
}

// noFLOPs is the rule of kinds that only move data.
func noFLOPs(npu.Op) int64 { return 0 }
