package kind

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.MatMul, Attrs: "ta:b tb:b bias:b out:s",
		In: "a b bias:full?bias", Out: "y",
		Shape: inferMatMul, Complete: wideOut,
	})
}

func inferMatMul(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
