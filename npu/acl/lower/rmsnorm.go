package lower

import "github.com/gotrain/gotrain/npu"

var rmsNormRules = map[string]rule{
	npu.RMSNorm:    {lower: lowerRMSNorm, needs: []string{"RmsNorm"}},
	npu.RMSNormBwd: {lower: lowerRMSNormBwd, needs: []string{"RmsNormGrad"}},
}

// rows is […, D] as [rows D].
func rows(t Tensor) Tensor {
	d := t.Dims[len(t.Dims)-1]
	return t.reshape(t.Elems()/d, d)
}

// lowerRMSNorm: AddRmsNorm, which would add the residual too, wants weights of x's type, but they are f32.
func lowerRMSNorm(b *builder) {
	x, y := rows(b.in(0)), rows(b.out(0))
	rstd := b.outOr(1, Float32, x.Dims[0]).reshape(x.Dims[0], 1)
	eps := b.op.Attrs.Float("eps", 1e-5)
	if b.op.Attrs.Bool("add") {
		sum := rows(b.outOr(2, x.DType, x.Dims...))
		b.call("Add", x, rows(b.in(2)), number(1), sum)
		b.call("RmsNorm", sum, b.in(1), eps, y, rstd) // y may lie over x or res, but no longer matters to them
		return
	}
	b.apart(y, []Tensor{x}, func(dst Tensor) { b.call("RmsNorm", x, b.in(1), eps, dst, rstd) })
}

func lowerRMSNormBwd(b *builder) {
	dy, x, dx := rows(b.in(0)), rows(b.in(1)), rows(b.out(0))
	rstd := b.in(3).reshape(x.Dims[0], 1)
	dw := b.outOr(1, Float32, x.Dims[1])
	grad := func(dst Tensor) { b.call("RmsNormGrad", dy, x, rstd, b.in(2), dst, dw) }
	if b.op.Attrs.Bool("add") {
		t := b.temp(dx.DType, dx.Dims...)
		grad(t)
		b.call("Add", t, rows(b.in(4)), number(1), dx)
		return
	}
	b.apart(dx, []Tensor{dy}, grad)
}
