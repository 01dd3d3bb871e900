package op

import "github.com/gotrain/gotrain/npu"

const (
	maxPoolSpec = "kernel:2 stride:2 pad:4 dilation:2 "
	avgPoolSpec = "kernel:2 stride:2 pad:4 include_pad:b "
)

func init() {
	Register(&Kind{
		Name: npu.MaxPool, Infer: inferMaxPool, Grad: gradPool(npu.MaxPoolBwd), FLOPs: poolFLOPs(true),
		Out: []Class{Act, Keep},
	})
	Register(&Kind{Name: npu.MaxPoolBwd, Infer: inferMaxPoolBwd, In: []Class{Act, Keep}, FLOPs: perElem(1)})
	Register(&Kind{Name: npu.AvgPool, Infer: inferAvgPool, Grad: gradPool(npu.AvgPoolBwd), FLOPs: poolFLOPs(true)})
	Register(&Kind{Name: npu.AvgPoolBwd, Infer: inferAvgPoolBwd, FLOPs: poolFLOPs(false)})
	Register(&Kind{Name: npu.GlobalAvgPool, Infer: inferGAP, Grad: gradPool(npu.GlobalAvgPoolBwd), FLOPs: perElem(1)})
	Register(&Kind{Name: npu.GlobalAvgPoolBwd, Infer: inferGAPBwd})
}

func (c *checker) pooled(x npu.Shape) npu.Shape {
	w := c.poolWindow()
	oh, ow := c.out(w, x[2], x[3])
	return npu.Shape{x[0], x[1], oh, ow}
}

func inferMaxPool(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", maxPoolSpec)
	c.rank(0, "x", 4)
	c.floats(0)
	if !c.ok() {
		return nil, c.err
	}
	y := c.pooled(in[0].Shape)
	return c.done(npu.Desc{Shape: y, DType: in[0].DType}, npu.Desc{Shape: y, DType: npu.I32})
}

func inferAvgPool(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", avgPoolSpec)
	c.rank(0, "x", 4)
	c.floats(0)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: c.pooled(in[0].Shape), DType: in[0].DType})
}

// poolBwd checks dy against the pooled shape of x_shape and gives dx.
func (c *checker) poolBwd() npu.Desc {
	c.rank(0, "dy", 4)
	c.float(0, "dy")
	x := c.nchw("x_shape")
	if !c.ok() {
		return npu.Desc{}
	}
	if y := c.pooled(x); c.ok() && !y.Equal(c.in[0].Shape) {
		c.failf("dy is %v, want %v", c.in[0].Shape, y)
	}
	return npu.Desc{Shape: x, DType: c.in[0].DType}
}

func inferMaxPoolBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "dy idx", maxPoolSpec+"x_shape:n")
	dx := c.poolBwd()
	if c.ok() {
		c.typed(1, "idx", npu.I32, in[0].Shape...)
	}
	return c.done(dx)
}

func inferAvgPoolBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "dy", avgPoolSpec+"x_shape:n")
	return c.done(c.poolBwd())
}

func inferGAP(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "")
	c.rank(0, "x", 4)
	c.floats(0)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: in[0].Shape[:2], DType: in[0].DType})
}

func inferGAPBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "dy", "x_shape:n")
	c.rank(0, "dy", 2)
	c.floats(0)
	x := c.nchw("x_shape")
	if c.ok() && !x[:2].Equal(in[0].Shape) {
		c.failf("dy is %v, want %v", in[0].Shape, x[:2])
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: x, DType: in[0].DType})
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
