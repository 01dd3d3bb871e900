package lower

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

var poolRules = map[string]rule{
	npu.MaxPool:          {lower: lowerMaxPool},
	npu.MaxPoolBwd:       {lower: lowerMaxPoolBwd},
	npu.AvgPool:          {lower: lowerAvgPool, needs: []string{"AvgPool2d"}},
	npu.AvgPoolBwd:       {lower: lowerAvgPoolBwd, needs: []string{"AvgPool2dBackward"}},
	npu.GlobalAvgPool:    {lower: lowerGap},
	npu.GlobalAvgPoolBwd: {lower: lowerGapBwd},
}

// pooling is the geometry of a pooling.
type pooling struct {
	slide
	kernel [2]int64
}

func poolingOf(a npu.Attrs) pooling {
	k := a.Ints("kernel")
	return pooling{slideOf(a), [2]int64{int64(k[0]), int64(k[1])}}
}

// direct reports whether the operators take the padding: the same on opposite sides, at most half of the kernel.
func (p pooling) direct() bool {
	return p.symmetric() && 2*p.pad[0] <= p.kernel[0] && 2*p.pad[1] <= p.kernel[1]
}

func (p pooling) dilated() bool { return p.dilation != [2]int64{1, 1} }

func (p pooling) kernels() []int64 { return []int64{p.kernel[0], p.kernel[1]} }

// sides is the padding of an operator that takes one number for opposite sides; nothing after padded.
func (p pooling) sides() []int64 {
	if p.direct() {
		return []int64{p.pad[0], p.pad[1]}
	}
	return []int64{0, 0}
}

// padded are the dimensions of a plane with its padding.
func (p pooling) padded(x []int64) []int64 {
	return []int64{x[0], x[1], x[2] + p.pad[0] + p.pad[2], x[3] + p.pad[1] + p.pad[3]}
}

// pad is x with padding around it.
func (b *builder) pad(p pooling, x Tensor, v float64) Tensor {
	if p.pad == [4]int64{} {
		return x
	}
	t := b.temp(x.DType, p.padded(x.Dims)...).nchw()
	b.call("ConstantPadNd", x, []int64{p.pad[1], p.pad[3], p.pad[0], p.pad[2]}, number(v), t)
	return t
}

// lowest is the smallest finite number of a type: the operators do not take -Inf.
func lowest(t DType) float64 {
	switch t {
	case Float16:
		return -65504
	case BFloat16:
		return -0x1.FEp127
	}
	return -0x1.FFFFFEp127
}

// lowerMaxPool: without dilation the operator, on a padded copy where it does not take the padding; else tap by tap.
func lowerMaxPool(b *builder) {
	p := poolingOf(b.op.Attrs)
	x, y := b.in(0).nchw(), b.out(0).nchw()
	idx := b.outOr(1, Int32, y.Dims...).nchw()
	switch {
	case p.dilated():
		b.maxByTap(p, x, y, idx)
	case p.direct():
		b.call("MaxPool2dWithIndices", x, p.kernels(), p.strides(), p.sides(), []int64{1, 1}, false, y, idx)
	default:
		padded := b.temp(Int32, y.Dims...).nchw()
		b.call("MaxPool2dWithIndices", b.pad(p, x, lowest(x.DType)), p.kernels(), p.strides(), []int64{0, 0}, []int64{1, 1}, false, y, padded)
		b.call("IndexSelect", b.unpadded(p, x.Dims), 0, padded.flat(), idx.flat())
	}
}

// unpadded maps places in a padded plane to places in the plane. Padding, which never wins, maps to 0.
func (b *builder) unpadded(p pooling, x []int64) Tensor {
	d := p.padded(x)
	return b.constant(fmt.Sprintf("places of %v in %v", x[2:], p.pad), Int32, func() []byte {
		return ints(d[2]*d[3], func(i int64) int64 {
			r, c := i/d[3]-p.pad[0], i%d[3]-p.pad[1]
			if r < 0 || r >= x[2] || c < 0 || c >= x[3] {
				return 0
			}
			return r*x[3] + c
		})
	}, d[2]*d[3])
}

// maxByTap keeps the maximum so far and the distance of its place from that of the first tap.
func (b *builder) maxByTap(p pooling, x, y, idx Tensor) {
	oh, ow, width := y.Dims[2], y.Dims[3], x.Dims[3]
	in := b.pad(p, x, lowest(x.DType))
	more := b.temp(Bool, y.Dims...)
	away := b.temp(Int32, y.Dims...)
	b.call("InplaceZero", away)
	for ky := range p.kernel[0] {
		for kx := range p.kernel[1] {
			v := in.every(2, ky*p.dilation[0], oh, p.stride[0]).every(3, kx*p.dilation[1], ow, p.stride[1])
			if ky+kx == 0 {
				b.call("InplaceCopy", y, v)
				continue
			}
			b.call("GtTensor", v, y, more)
			b.call("Maximum", v, y, y)
			b.call("InplaceMaskedFillScalar", away, more, integer(Int32, int(ky*p.dilation[0]*width+kx*p.dilation[1])))
		}
	}
	first := b.constant(fmt.Sprintf("first tap of %v, width %d, %+v", y.Dims[2:], width, p), Int32, func() []byte {
		return ints(oh*ow, func(i int64) int64 {
			return (i/ow*p.stride[0]-p.pad[0])*width + i%ow*p.stride[1] - p.pad[1]
		})
	}, oh, ow)
	b.call("Add", away, first, integer(Int32, 1), idx)
}

// lowerMaxPoolBwd: the operator wants x, of which its kernels only use the shape, so it lies over dx.
func lowerMaxPoolBwd(b *builder) {
	p := poolingOf(b.op.Attrs)
	dy, idx, dx := b.in(0).nchw(), b.in(1).nchw(), b.out(0).nchw()
	if p.direct() && !p.dilated() {
		b.call("MaxPool2dWithIndicesBackward", dy, dx, idx, p.kernels(), p.strides(), p.sides(), []int64{1, 1}, false, dx)
		return
	}
	planes := dx.Dims[0] * dx.Dims[1]
	flat := func(t Tensor) Tensor { return t.reshape(planes, t.Dims[2]*t.Dims[3]) }
	b.into(flat(dx), func(sum Tensor) {
		b.call("InplaceZero", sum)
		b.call("InplaceScatter", sum, 1, flat(idx), b.full(flat(dy)), 1)
	})
}

// coverage is by how much an average over the kernel is too small where padding does not count.
func (b *builder) coverage(p pooling, x, y []int64) Tensor {
	all := float64(p.kernel[0] * p.kernel[1])
	inside := func(axis int, o int64) (n float64) {
		for k := range p.kernel[axis] {
			if at := o*p.stride[axis] + k - p.pad[axis]; at >= 0 && at < x[2+axis] {
				n++
			}
		}
		return n
	}
	return b.constant(fmt.Sprintf("coverage of %v by %v, %+v", x[2:], y[2:], p), Float32, func() []byte {
		return floats(y[2]*y[3], func(i int64) float64 { return all / max(1, inside(0, i/y[3])*inside(1, i%y[3])) })
	}, y[2], y[3])
}

func lowerAvgPool(b *builder) {
	p, count := poolingOf(b.op.Attrs), b.op.Attrs.Bool("include_pad")
	x, y := b.in(0).nchw(), b.out(0).nchw()
	in := x
	if !p.direct() {
		in = b.pad(p, x, 0)
	}
	b.call("AvgPool2d", in, p.kernels(), p.strides(), p.sides(), false, count || !p.direct(), 0, 0, y)
	if !p.direct() && !count {
		b.call("Mul", y, b.coverage(p, x.Dims, y.Dims), y)
	}
}

// lowerAvgPoolBwd: only the shape of the operator's input counts, so it lies over the result.
func lowerAvgPoolBwd(b *builder) {
	p, count := poolingOf(b.op.Attrs), b.op.Attrs.Bool("include_pad")
	dy, dx := b.in(0).nchw(), b.out(0).nchw()
	to := dx
	if !p.direct() {
		to = b.temp(dx.DType, p.padded(dx.Dims)...).nchw()
		if !count {
			g := b.temp(dy.DType, dy.Dims...).nchw()
			b.call("Mul", dy, b.coverage(p, dx.Dims, dy.Dims), g)
			dy = g
		}
	}
	b.call("AvgPool2dBackward", dy, to, p.kernels(), p.strides(), p.sides(), false, count || !p.direct(), 0, 0, to)
	if !p.direct() {
		b.call("InplaceCopy", dx, to.slice(2, p.pad[0], p.pad[0]+dx.Dims[2]).slice(3, p.pad[1], p.pad[1]+dx.Dims[3]))
	}
}

func lowerGap(b *builder) {
	y := b.out(0)
	b.call("Mean", b.in(0), []int64{2, 3}, false, y.DType, y)
}

func lowerGapBwd(b *builder) {
	dy, dx := b.in(0), b.out(0)
	g := b.temp(dy.DType, dy.Dims...)
	b.call("Muls", dy, number(1/float64(dx.Dims[2]*dx.Dims[3])), g)
	b.call("InplaceCopy", dx, g.unsqueeze(2).unsqueeze(3).broadcast(dx.Dims...))
}
