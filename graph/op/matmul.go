package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.MatMul), Grad: gradMatMul, FLOPs: matmulFLOPs})
}

func gradMatMul(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	a, b, dy := c.In[0], c.In[1], c.DOut
	if dt := a.Desc().DType; dy.Desc().DType != dt { // out=f32 on 16-bit operands
		dy = r.do(npu.Convert, npu.Attrs{"dtype": dt.String()}, dy)
	}
	mm := func(x Ref, tx bool, y Ref, ty bool) Ref {
		return r.do(npu.MatMul, npu.Attrs{"ta": tx, "tb": ty, "bias": false}, x, y)
	}
	var da, db Ref
	switch ta, tb := c.Attrs.Bool("ta"), c.Attrs.Bool("tb"); {
	case !ta && !tb: // y = a·b
		da, db = mm(dy, false, b, true), mm(a, true, dy, false)
	case !ta: // y = a·bᵀ
		da, db = mm(dy, false, b, false), mm(dy, true, a, false)
	case !tb: // y = aᵀ·b
		da, db = mm(b, false, dy, true), mm(a, false, dy, false)
	default: // y = aᵀ·bᵀ
		da, db = mm(b, true, dy, true), mm(dy, true, a, true)
	}
	if !c.Attrs.Bool("bias") {
		return r.done(da, db)
	}
	rank := len(a.Desc().Shape)
	return r.done(da, db, r.sum(dy, axesBut(rank, rank-1), false))
}

func matmulFLOPs(o npu.Op) int64 {
	s := o.In[0].Shape
	k := s[len(s)-1]
	if o.Attrs.Bool("ta") {
		k = s[len(s)-2]
	}
	return 2 * elems(o.Out[0]) * int64(k)
}
