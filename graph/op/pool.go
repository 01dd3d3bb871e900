package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.MaxPool), Grad: gradPool(npu.MaxPoolBwd), FLOPs: poolFLOPs(true)})
	Register(&Kind{Kind: kind.Of(npu.MaxPoolBwd), FLOPs: perElem(1)})
	Register(&Kind{Kind: kind.Of(npu.AvgPool), Grad: gradPool(npu.AvgPoolBwd), FLOPs: poolFLOPs(true)})
	Register(&Kind{Kind: kind.Of(npu.AvgPoolBwd), FLOPs: poolFLOPs(false)})
	Register(&Kind{Kind: kind.Of(npu.GlobalAvgPool), Grad: gradPool(npu.GlobalAvgPoolBwd), FLOPs: perElem(1)})
	Register(&Kind{Kind: kind.Of(npu.GlobalAvgPoolBwd)})
}

// gradPool hands dy, and the indices where there are any, to the backward kind.
func gradPool(bwd string) func(Tape, Call) ([]Ref, error) {
	return func(t Tape, c Call) ([]Ref, error) {
		r := &rule{t: t}
		in := append([]Ref{c.DOut}, c.Out[1:]...)
		return r.done(r.do(bwd, withShape(c.Attrs, "x_shape", c.In[0].Desc().Shape), in...))
	}
}

// poolFLOPs: one operation for each element of each window.
func poolFLOPs(forward bool) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		y := o.In[0]
		if forward {
			y = o.Out[0]
		}
		k := o.Attrs.Ints("kernel")
		return elems(y) * int64(k[0]*k[1])
	}
}
