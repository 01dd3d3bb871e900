package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.Reduce), Grad: gradReduce, FLOPs: perElem(1)})
	Register(&Kind{Kind: kind.Of(npu.BroadcastTo), Grad: gradBroadcastTo, FLOPs: noFLOPs})
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

func gradBroadcastTo(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.unbroadcast(c.DOut, c.In[0].Desc().Shape))
}
