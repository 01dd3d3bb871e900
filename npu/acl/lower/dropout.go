package lower

import "github.com/gotrain/gotrain/npu"

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
	n := x.Elems()
	mask := b.temp(UInt8, (n+127)/128*16)
	zero := b.constant("i64 0", Int64, func() []byte { return make([]byte, 8) }, 1)
	b.call("DropoutGenMaskV2Tensor", []int64{n}, p, b.in(1).reshape(1), zero, int64(b.op.Attrs.Int("id", 0))<<32, x.DType, mask)
	b.call("DropoutDoMask", x, mask, p, y)
}
