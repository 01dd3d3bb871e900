package lower

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

var convRules = map[string]rule{
	npu.Conv2D:           {lower: lowerConv, needs: []string{"Convolution"}},
	npu.Conv2DBwdData:    {lower: lowerConvBwdData, needs: []string{"ConvolutionBackward"}},
	npu.Conv2DBwdWeights: {lower: lowerConvBwdWeights, needs: []string{"ConvolutionBackward"}},
}

// slide is how a kernel moves over a plane: by h and w; padding top, left, bottom, right.
type slide struct {
	stride, dilation [2]int64
	pad              [4]int64
}

func slideOf(a npu.Attrs) slide {
	s := slide{stride: [2]int64{1, 1}, dilation: [2]int64{1, 1}}
	read := func(key string, to []int64) {
		for i, v := range a.Ints(key) {
			to[i] = int64(v)
		}
	}
	read("stride", s.stride[:])
	read("dilation", s.dilation[:])
	read("pad", s.pad[:])
	return s
}

// symmetric reports whether opposite sides have the same padding.
func (s slide) symmetric() bool { return s.pad[0] == s.pad[2] && s.pad[1] == s.pad[3] }

// padding is the padding as convolution wants it: two numbers by h and w, or top, bottom, left, right.
func (s slide) padding() []int64 {
	if s.symmetric() {
		return []int64{s.pad[0], s.pad[1]}
	}
	return []int64{s.pad[0], s.pad[2], s.pad[1], s.pad[3]}
}

func (s slide) strides() []int64   { return slices.Clone(s.stride[:]) }
func (s slide) dilations() []int64 { return slices.Clone(s.dilation[:]) }

// lowerConv: the bias has the type of x, so it is rounded to 16 bits with 16-bit activations.
func lowerConv(b *builder) {
	x, w, y := b.in(0).nchw(), b.in(1).nchw(), b.out(0).nchw()
	a, s := b.op.Attrs, slideOf(b.op.Attrs)
	var bias any = null{}
	if a.Bool("bias") {
		bias = b.as(b.in(2), x.DType)
	}
	b.call("Convolution", x, w, bias, s.strides(), s.padding(), s.dilations(), false, []int64{0, 0}, a.Int("groups", 1), y, b.cube())
	if a.Bool("relu") {
		b.call("InplaceRelu", y)
	}
}

// gradient is a call of ConvolutionBackward for one of the gradients of x and w.
func (b *builder) gradient(dy, x, w Tensor, groups int, dx, dw any) {
	s := slideOf(b.op.Attrs)
	_, no := dx.(null)
	b.call("ConvolutionBackward", dy, x, w, []int64{w.Dims[0]}, s.strides(), s.padding(), s.dilations(), false, []int64{0, 0}, groups,
		[]bool{!no, no, false}, b.cube(), dx, dw, null{})
}

// lowerConvBwdData: only the shape of the input counts, so it lies over dx.
func lowerConvBwdData(b *builder) {
	dx := b.out(0).nchw()
	b.gradient(b.in(0).nchw(), dx, b.in(1).nchw(), b.op.Attrs.Int("groups", 1), dx, null{})
}

// lowerConvBwdWeights: dw is f32, which is what the operator computes for all types. With several groups it would round through f16, so each
// group is a call of its own, or each tap of the kernel where the groups are many and have one channel. db is a sum in f32, because the operator's is
// rounded to the type of dy.
func lowerConvBwdWeights(b *builder) {
	x, dy, dw := b.in(0).nchw(), b.in(1).nchw(), b.out(0).nchw()
	g := int64(b.op.Attrs.Int("groups", 1))
	switch {
	case g == 1:
		b.weights(dy, x, dw)
	case dw.Dims[1] == 1 && 2*dw.Dims[2]*dw.Dims[3] < g:
		b.byTap(dy, x, dw)
	default:
		c, o := x.Dims[1]/g, dy.Dims[1]/g
		for i := range g {
			b.weights(dy.slice(1, i*o, i*o+o), x.slice(1, i*c, i*c+c), dw.slice(0, i*o, i*o+o))
		}
	}
	if b.hasOut(1) {
		b.call("ReduceSum", dy, []int64{0, 2, 3}, false, Float32, b.out(1))
	}
}

// weights is the gradient of weights without groups. Only the shape of the weights counts, so they lie over dw.
func (b *builder) weights(dy, x, dw Tensor) {
	w := dw
	if w.DType = x.DType; w.DType != dw.DType {
		w.Offset, w.Storage = 0, w.Elems() // dw has more bytes than w needs
	}
	b.gradient(dy, x, w, 1, null{}, dw)
}

// byTap computes the gradient of weights [C·m 1 KH KW] tap by tap: products of dy with shifted views of x, summed over batch and plane.
func (b *builder) byTap(dy, x, dw Tensor) {
	s := slideOf(b.op.Attrs)
	n, c, m := x.Dims[0], x.Dims[1], dw.Dims[0]/x.Dims[1]
	oh, ow := dy.Dims[2], dy.Dims[3]
	dy, x = b.full(dy).reshape(n, c, m, oh, ow), b.full(x)
	prod := b.temp(Float32, n, c, m, oh, ow)
	b.call("InplaceZero", dw)
	for ky := range dw.Dims[2] {
		for kx := range dw.Dims[3] {
			y0, y1, top := s.span(0, ky, x.Dims[2], oh)
			x0, x1, left := s.span(1, kx, x.Dims[3], ow)
			if y0 >= y1 || x0 >= x1 {
				continue // the tap only sees padding
			}
			g := dy.slice(3, y0, y1).slice(4, x0, x1)
			v := x.every(2, top+y0*s.stride[0], y1-y0, s.stride[0]).every(3, left+x0*s.stride[1], x1-x0, s.stride[1]).unsqueeze(2)
			p := prod.flat().slice(0, 0, g.Elems()).reshape(g.Dims...)
			b.call("Mul", g, v, p)
			to := dw.slice(2, ky, ky+1).slice(3, kx, kx+1)
			to.Dims, to.Strides, to.Format = []int64{c, m}, []int64{m * dw.Strides[0], dw.Strides[0]}, ND
			b.call("ReduceSum", p, []int64{0, 3, 4}, false, Float32, to)
		}
	}
}

// span returns the output positions lo…hi-1 of an axis for which tap k lies inside an input of n, and the input position of output position 0.
func (s slide) span(axis int, k, n, out int64) (lo, hi, origin int64) {
	origin = k*s.dilation[axis] - s.pad[axis]
	step := s.stride[axis]
	if origin < 0 {
		lo = (-origin + step - 1) / step
	}
	if last := n - 1 - origin; last >= 0 {
		hi = min(out, last/step+1)
	}
	return lo, hi, origin
}
