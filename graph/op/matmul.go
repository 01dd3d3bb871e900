package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.MatMul, Infer: inferMatMul, Grad: gradMatMul, FLOPs: matmulFLOPs,
		In: []Class{Act, Act, Full}, Out: []Class{Act},
	})
}

func inferMatMul(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "a b"
	if a.Bool("bias") {
		names += " bias"
	}
	c := check(a, in, names, "ta:b tb:b bias:b out:s")
	c.float(0, "a")
	if c.ok() && in[1].DType != in[0].DType {
		c.failf("a is %s, b is %s; both must be of one type", in[0].DType, in[1].DType)
	}
	if !c.ok() {
		return nil, c.err
	}
	as, bs := in[0].Shape, in[1].Shape
	n := len(as)
	if n < 2 || len(bs) != n || !slices.Equal(as[:n-2], bs[:n-2]) {
		c.failf("a %v and b %v must have rank 2 or more and equal leading dimensions\nhint: reshape or broadcast one of them", as, bs)
		return nil, c.err
	}
	m, k := as[n-2], as[n-1]
	if a.Bool("ta") {
		m, k = k, m
	}
	k2, cols := bs[n-2], bs[n-1]
	if a.Bool("tb") {
		k2, cols = cols, k2
	}
	if k != k2 {
		c.failf("inner dimensions differ: a %v (ta=%t) gives %d, b %v (tb=%t) gives %d", as, a.Bool("ta"), k, bs, a.Bool("tb"), k2)
	}
	if a.Bool("bias") {
		c.full(2, "bias", cols)
	}
	return c.done(npu.Desc{Shape: append(as[:n-2].Clone(), m, cols), DType: c.outType(in[0].DType)})
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
