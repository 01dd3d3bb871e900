package op

import "github.com/gotrain/gotrain/npu"

const convSpec = "stride:2 pad:4 dilation:2 groups:i bias:b relu:b "

func init() {
	Register(&Kind{
		Name: npu.Conv2D, Infer: inferConv, Grad: gradConv, FLOPs: convFLOPs(0, 1),
		In: []Class{Act, Act, Full}, Out: []Class{Act},
	})
	Register(&Kind{
		Name: npu.Conv2DBwdData, Infer: inferConvBwdData, FLOPs: convFLOPs(-1, 1),
		In: []Class{Act}, Out: []Class{Act},
	})
	Register(&Kind{
		Name: npu.Conv2DBwdWeights, Infer: inferConvBwdWeights, FLOPs: convFLOPs(1, -1),
		In: []Class{Act}, Out: []Class{Full},
	})
}

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
	names := "x w"
	if a.Bool("bias") {
		names += " bias"
	}
	c := check(a, in, names, convSpec)
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
	c := check(a, in, "dy w", convSpec+"x_shape:n")
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
	c := check(a, in, "x dy", convSpec+"w_shape:n")
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
