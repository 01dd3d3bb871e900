package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.MaxPool, Attrs: maxPoolAttrs,
		In: "x", Out: "y idx:keep,nil,saved",
		Shape: inferMaxPool,
	})
	Register(&Kind{
		Name: npu.MaxPoolBwd, Attrs: maxPoolAttrs + "x_shape:n",
		In: "dy idx:keep", Out: "dx",
		Shape: inferMaxPoolBwd,
	})
	Register(&Kind{
		Name: npu.AvgPool, Attrs: avgPoolAttrs,
		In: "x", Out: "y",
		Shape: inferAvgPool,
	})
	Register(&Kind{
		Name: npu.AvgPoolBwd, Attrs: avgPoolAttrs + "x_shape:n",
		In: "dy", Out: "dx",
		Shape: inferAvgPoolBwd,
	})
	Register(&Kind{
		Name: npu.GlobalAvgPool,
		In:   "x", Out: "y",
		Shape: inferGAP,
	})
	Register(&Kind{
		Name: npu.GlobalAvgPoolBwd, Attrs: "x_shape:n",
		In: "dy", Out: "dx",
		Shape: inferGAPBwd,
	})
}

const (
	maxPoolAttrs = "kernel:2 stride:2 pad:4 dilation:2 "
	avgPoolAttrs = "kernel:2 stride:2 pad:4 include_pad:b "
)

func (c *checker) pooled(x npu.Shape) npu.Shape {
	w := c.poolWindow()
	oh, ow := c.out(w, x[2], x[3])
	return npu.Shape{x[0], x[1], oh, ow}
}

func inferMaxPool(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "x", 4)
	c.floats(0)
	if !c.ok() {
		return nil, c.err
	}
	y := c.pooled(in[0].Shape)
	return c.done(npu.Desc{Shape: y, DType: in[0].DType}, npu.Desc{Shape: y, DType: npu.I32})
}

func inferAvgPool(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
	c := &checker{a: a, in: in}
	dx := c.poolBwd()
	if c.ok() {
		c.typed(1, "idx", npu.I32, in[0].Shape...)
	}
	return c.done(dx)
}

func inferAvgPoolBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	return c.done(c.poolBwd())
}

func inferGAP(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "x", 4)
	c.floats(0)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: in[0].Shape[:2], DType: in[0].DType})
}

func inferGAPBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
