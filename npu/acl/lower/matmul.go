package lower

import "github.com/gotrain/gotrain/npu"

var matmulRules = map[string]rule{npu.MatMul: {lower: lowerMatMul, needs: []string{"Mm", "BatchMatMul", "Addmm"}}}

func lowerMatMul(b *builder) {
	at := b.op.Attrs
	x, w, y := matrices(b.in(0)), matrices(b.in(1)), matrices(b.out(0))
	if at.Bool("ta") {
		x = x.swap()
	}
	if at.Bool("tb") {
		w = w.swap()
	}
	if !at.Bool("bias") {
		b.product(x, w, y)
		return
	}
	bias := b.in(2)
	if len(y.Dims) == 2 && y.DType == x.DType { // the bias is added before the result is rounded, but is rounded itself
		b.call("Addmm", b.as(bias, y.DType), x, w, number(1), number(1), y, b.cube())
		return
	}
	b.product(x, w, y)
	b.call("InplaceAdd", y, bias, number(1))
}

// matrices is […, M, N] as [M N] or [B M N].
func matrices(t Tensor) Tensor {
	n := len(t.Dims)
	lead := int64(1)
	for _, d := range t.Dims[:n-2] {
		lead *= d
	}
	if n == 2 || lead == 1 {
		return t.reshape(t.Dims[n-2], t.Dims[n-1])
	}
	return t.reshape(lead, t.Dims[n-2], t.Dims[n-1])
}

// wide reports whether a product of 16-bit operands has an f32 result without being rounded to 16 bits first. 8.1 has no such kernel.
func (c Caps) wide() bool { return c.Version.AtLeast(9, 0) }

// product computes y = x·w for matrices or batches of them. An f32 result of 16-bit operands is exact from CANN 9.0 on; before, it is rounded
// to 16 bits, unless Caps.Exact asks for a product of f32.
func (b *builder) product(x, w, y Tensor) {
	if y.DType != x.DType && !b.caps.wide() {
		if b.caps.Exact {
			x, w = b.full(x), b.full(w)
		} else {
			t := b.temp(x.DType, y.Dims...)
			b.mm(x, w, t)
			b.cast(t, y)
			return
		}
	}
	b.mm(x, w, y)
}

func (b *builder) mm(x, w, y Tensor) {
	if len(y.Dims) == 2 {
		b.call("Mm", x, w, y, b.cube())
		return
	}
	b.call("BatchMatMul", x, w, y, b.cube())
}
