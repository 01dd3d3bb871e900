package lower

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

var dropoutRules = map[string]rule{npu.Dropout: {lower: lowerDropout, has: hasDropout}}

// hasDropout: the seed is device memory, which only the operator of CANN 9 takes. The operator's bits are its own.
func hasDropout(a npu.Attrs, c Caps) bool {
	return a.Float("p", 0) == 0 || c.Has("DropoutGenMaskV2Tensor") && c.Has("DropoutDoMask")
}

// lowerDropout: layers draw from the same generator, 2³² numbers apart.
func lowerDropout(b *builder) {
	x, y, p := b.in(0), b.out(0), b.op.Attrs.Float("p", 0)
	if p == 0 {
		b.inherit(y, x)
		return
	}
	if b.op.Attrs.Bool("rows") {
		lowerDropPath(b, x, y, p)
		return
	}
	n := x.Elems()
	b.call("DropoutDoMask", x, b.dropMask(n, p, x.DType), p, y)
}

// dropMask is the mask of n elements of type t, a bit each.
func (b *builder) dropMask(n int64, p float64, t DType) Tensor {
	mask := b.temp(UInt8, (n+127)/128*16)
	zero := b.constant("i64 0", Int64, func() []byte { return make([]byte, 8) }, 1)
	b.call("DropoutGenMaskV2Tensor", []int64{n}, p, b.in(1).reshape(1), zero, int64(b.op.Attrs.Int("id", 0))<<32, t, mask)
	return mask
}

// lowerDropPath draws a factor for each row, in f32: 0 or 1/(1-p).
func lowerDropPath(b *builder, x, y Tensor, p float64) {
	n := x.Dims[0]
	ones := b.constant(fmt.Sprintf("f32 1 ×%d", n), Float32, func() []byte { return floats(n, func(int64) float64 { return 1 }) }, n)
	factor := b.temp(Float32, n)
	b.call("DropoutDoMask", ones, b.dropMask(n, p, Float32), p, factor)
	each := make([]int64, len(x.Dims))
	for i := range each {
		each[i] = 1
	}
	each[0] = n
	b.call("Mul", x, factor.reshape(each...), y)
}
