package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{Name: npu.Reduce, Infer: inferReduce, Grad: gradReduce, FLOPs: perElem(1)})
	Register(&Kind{Name: npu.BroadcastTo, Infer: inferBroadcastTo, Grad: gradBroadcastTo, FLOPs: noFLOPs})
}

func inferReduce(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "fn:s axes:n keep:b out:s")
	c.floats(0)
	if fn := a.Str("fn"); c.ok() && !slices.Contains([]string{"sum", "mean", "max"}, fn) {
		c.failf("knows no function %q, only sum, mean, max", fn)
	}
	if !c.ok() {
		return nil, c.err
	}
	x, axes := in[0].Shape, a.Ints("axes")
	for i, ax := range axes {
		if ax < 0 || ax >= len(x) || (i > 0 && ax <= axes[i-1]) {
			c.failf("axes %v must be sorted, different and within the rank of x %v", axes, x)
			return nil, c.err
		}
	}
	y := npu.Shape{}
	for i, n := range x {
		if !slices.Contains(axes, i) {
			y = append(y, n)
		} else if a.Bool("keep") {
			y = append(y, 1)
		}
	}
	return c.done(npu.Desc{Shape: y, DType: c.outType(in[0].DType)})
}

// gradReduce: equal maxima share the gradient evenly.
func gradReduce(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	x, xs, axes := c.In[0], c.In[0].Desc().Shape, c.Attrs.Ints("axes")
	kept, n, leading := xs.Clone(), 1, true
	for i, a := range axes {
		kept[a] = 1
		n *= xs[a]
		leading = leading && a == i
	}
	dy := c.DOut
	if t := x.Desc().DType; dy.Desc().DType != t {
		dy = r.do(npu.Convert, npu.Attrs{"dtype": t.String()}, dy)
	}
	if !leading || c.Attrs.Str("fn") == "max" { // otherwise broadcasting aligns the axes
		dy = r.reshape(dy, kept)
	}
	switch c.Attrs.Str("fn") {
	case "mean":
		dy = r.affine(dy, 1/float64(n), 0)
	case "max":
		top := r.binary("eq", x, r.reshape(c.Out[0], kept))
		return r.done(r.mul(top, r.binary("div", dy, r.sum(top, axes, true))))
	}
	return r.done(r.broadcast(dy, xs))
}

func inferBroadcastTo(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "shape:n")
	to := c.shape("shape")
	if !c.ok() {
		return nil, c.err
	}
	if y, ok := Broadcast(in[0].Shape, to); !ok || !y.Equal(to) {
		c.failf("shape %v does not broadcast to %v", in[0].Shape, to)
	}
	return c.done(npu.Desc{Shape: to, DType: in[0].DType})
}

func gradBroadcastTo(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.unbroadcast(c.DOut, c.In[0].Desc().Shape))
}
