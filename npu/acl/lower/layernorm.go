package lower

import "github.com/gotrain/gotrain/npu"

var layerNormRules = map[string]rule{
	npu.LayerNorm:    {lower: lowerLayerNorm, needs: []string{"LayerNorm"}},
	npu.LayerNormBwd: {lower: lowerLayerNormBwd, needs: []string{"LayerNormBackward"}},
}

// lowerLayerNorm: the operator wants statistics of x's rank; a 16-bit x goes with f32 weights.
func lowerLayerNorm(b *builder) {
	x, y := rows(b.in(0)), rows(b.out(0))
	n, d := x.Dims[0], x.Dims[1]
	mean, rstd := b.outOr(1, Float32, n).reshape(n, 1), b.outOr(2, Float32, n).reshape(n, 1)
	norm := func(x, y Tensor) {
		b.call("LayerNorm", x, []int64{d}, b.in(1), b.in(2), b.op.Attrs.Float("eps", 1e-5), y, mean, rstd)
	}
	if b.op.Attrs.Bool("add") {
		sum := rows(b.outOr(3, x.DType, x.Dims...))
		b.call("Add", x, rows(b.in(3)), number(1), sum)
		norm(sum, y) // y may lie over x or res, but no longer matters to them
		return
	}
	b.apart(y, []Tensor{x}, func(dst Tensor) { norm(x, dst) })
}

func lowerLayerNormBwd(b *builder) {
	dy, x, dx := rows(b.in(0)), rows(b.in(1)), rows(b.out(0))
	n, d := x.Dims[0], x.Dims[1]
	mean, rstd := b.in(3).reshape(n, 1), b.in(4).reshape(n, 1)
	dw, db := b.outOr(1, Float32, d), b.outOr(2, Float32, d)
	grad := func(dst Tensor) {
		b.call("LayerNormBackward", dy, x, []int64{d}, mean, rstd, b.in(2), null{}, []bool{true, true, true}, dst, dw, db)
	}
	if b.op.Attrs.Bool("add") {
		t := b.temp(dx.DType, dx.Dims...)
		grad(t)
		b.call("Add", t, rows(b.in(5)), number(1), dx)
		return
	}
	b.apart(dx, []Tensor{dy}, grad)
}
