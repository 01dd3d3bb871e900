package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.Conv2D), Grad: gradConv, FLOPs: convFLOPs(0, 1)})
	Register(&Kind{Kind: kind.Of(npu.Conv2DBwdData), FLOPs: convFLOPs(-1, 1)})
	Register(&Kind{Kind: kind.Of(npu.Conv2DBwdWeights), FLOPs: convFLOPs(1, -1)})
}

// gradConv keeps the two halves apart, so that an unused one (dx of the first layer) is pruned.
func gradConv(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	x, w, dy := c.In[0], c.In[1], r.masked(c)
	a := only(c.Attrs, "stride", "pad", "dilation", "groups")
	dx := r.do(npu.Conv2DBwdData, withShape(a, "x_shape", x.Desc().Shape), dy, w)
	aw := withShape(a, "w_shape", w.Desc().Shape)
	if !c.Attrs.Bool("bias") {
		return r.done(dx, r.do(npu.Conv2DBwdWeights, aw, x, dy))
	}
	aw["bias"] = true
	d := r.many(npu.Conv2DBwdWeights, aw, x, dy)
	return r.done(dx, d[0], d[1])
}

// convFLOPs: two operations for each output element and each weight that it sees; y and w say where those two shapes are
// found: output 0 is -1 for the kinds whose output is the other one.
func convFLOPs(dyIn, wIn int) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		y, w := o.Out[0].Shape, o.Out[0].Shape
		switch {
		case dyIn == 1: // x, dy → dw
			y = o.In[1].Shape
		case dyIn < 0: // dy, w → dx
			y, w = o.In[0].Shape, o.In[wIn].Shape
		default: // x, w → y
			w = o.In[wIn].Shape
		}
		return 2 * y.Elems() * int64(w[1]*w[2]*w[3])
	}
}
