package kind

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.Reduce, Attrs: "fn:s axes:n keep:b out:s",
		In: "x", Out: "y",
		Shape: inferReduce, Complete: wideOut, Follows: true, Fns: reduceFns,
	})
	Register(&Kind{
		Name: npu.BroadcastTo, Attrs: "shape:n",
		In: "x", Out: "y",
		Shape: inferBroadcastTo, Follows: true,
	})
}

func inferReduce(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.floats(0)
	if fn := a.Str("fn"); c.ok() && !slices.Contains(reduceFns, fn) {
		c.failf("knows no function %q, only %v", fn, reduceFns)
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

func inferBroadcastTo(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	to := c.shape("shape")
	if !c.ok() {
		return nil, c.err
	}
	if y, ok := Broadcast(in[0].Shape, to); !ok || !y.Equal(to) {
		c.failf("shape %v does not broadcast to %v", in[0].Shape, to)
	}
	return c.done(npu.Desc{Shape: to, DType: in[0].DType})
}
