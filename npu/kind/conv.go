package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Conv2D, Attrs: convAttrs,
		In: "x w bias:full?bias", Out: "y",
		Shape: inferConv,
	})
	Register(&Kind{
		Name: npu.Conv2DBwdData, Attrs: convAttrs + "x_shape:n",
		In: "dy w", Out: "dx",
		Shape: inferConvBwdData,
	})
	Register(&Kind{
		Name: npu.Conv2DBwdWeights, Attrs: convAttrs + "w_shape:n",
		In: "x dy", Out: "dw:full db:full?bias",
		Shape: inferConvBwdWeights,
	})
}

const convAttrs = "stride:2 pad:4 dilation:2 groups:i bias:b relu:b algorithm:s "

// convShape checks x and w against the attributes and gives y's shape.
func (c *checker) convShape(x, w npu.Shape) npu.Shape {
	g := c.a.Int("groups", 1)
	if !c.ok() {
		return npu.Shape{1, 1, 1, 1}
	}
	switch {
	case g < 1 || w[0]%g != 0:
		c.failf("groups %d must divide the %d output channels of w %v", g, w[0], w)
	case x[1] != w[1]*g:
		c.failf("x %v has %d channels, w %v wants %d in %d group(s)", x, x[1], w, w[1]*g, g)
	}
	oh, ow := c.out(c.window(w[2], w[3]), x[2], x[3])
	return npu.Shape{x[0], w[0], oh, ow}
}

func inferConv(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "x", 4)
	c.rank(1, "w", 4)
	c.float(0, "x")
	if c.ok() && in[1].DType != in[0].DType {
		c.failf("x is %s, w is %s; both must be of one type", in[0].DType, in[1].DType)
	}
	if !c.ok() {
		return nil, c.err
	}
	y := c.convShape(in[0].Shape, in[1].Shape)
	if a.Bool("bias") {
		c.full(2, "bias", y[1])
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func inferConvBwdData(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "dy", 4)
	c.rank(1, "w", 4)
	c.floats(0)
	x := c.nchw("x_shape")
	if !c.ok() {
		return nil, c.err
	}
	if y := c.convShape(x, in[1].Shape); c.ok() && !y.Equal(in[0].Shape) {
		c.failf("dy is %v, want %v", in[0].Shape, y)
	}
	return c.done(npu.Desc{Shape: x, DType: in[0].DType})
}

func inferConvBwdWeights(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "x", 4)
	c.rank(1, "dy", 4)
	c.floats(0)
	w := c.nchw("w_shape")
	if !c.ok() {
		return nil, c.err
	}
	if y := c.convShape(in[0].Shape, w); c.ok() && !y.Equal(in[1].Shape) {
		c.failf("dy is %v, want %v", in[1].Shape, y)
	}
	t := fullType(in[0].DType)
	out := []npu.Desc{{Shape: w, DType: t}}
	if a.Bool("bias") {
		out = append(out, npu.D(t, w[0]))
	}
	return c.done(out...)
}
