package lower

import "github.com/gotrain/gotrain/npu"

var elementRules = map[string]rule{
	npu.Relu:    {lower: func(b *builder) { b.call("Relu", b.in(0), b.out(0)) }},
	npu.ReluBwd: {lower: func(b *builder) { b.call("ThresholdBackward", b.in(0), b.in(1), number(0), b.out(0)) }},
	npu.Unary:   {lower: lowerUnary, has: hasUnary},
	npu.Binary:  {lower: lowerBinary, has: func(a npu.Attrs, _ Caps) bool { return binaryOps[a.Str("fn")] != "" }},
}

// unaryOps are the operators with arguments (self, out).
var unaryOps = map[string]string{
	"neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "abs": "Abs", "recip": "Reciprocal", "tanh": "Tanh",
	"sigmoid": "Sigmoid", "silu": "Silu", "sign": "Sign",
}

func hasUnary(a npu.Attrs, _ Caps) bool {
	fn := a.Str("fn")
	return unaryOps[fn] != "" || fn == "square" || fn == "affine"
}

func lowerUnary(b *builder) {
	x, y, a := b.in(0), b.out(0), b.op.Attrs
	alpha, beta := a.Float("alpha", 1), a.Float("beta", 0)
	switch fn := a.Str("fn"); {
	case fn == "square":
		b.call("Mul", x, x, y)
	case fn != "affine":
		b.call(unaryOps[fn], x, y)
	case beta == 0:
		b.call("Muls", x, number(alpha), y)
	case alpha == 1:
		b.call("Adds", x, number(beta), number(1), y)
	case x.DType == Float32:
		b.call("Muls", x, number(alpha), y)
		b.call("InplaceAdds", y, number(beta), number(1))
	default: // beta is f32, so the sum is too, and is rounded once
		b.call("Add", b.value(beta), x, number(alpha), y)
	}
}

var binaryOps = map[string]string{
	"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Maximum", "min": "Minimum", "gt": "GtTensor", "ge": "GeTensor", "eq": "EqTensor",
}

func lowerBinary(b *builder) {
	x, z, y, fn := b.in(0), b.in(1), b.out(0), b.op.Attrs.Str("fn")
	switch op := binaryOps[fn]; fn {
	case "add", "sub":
		b.call(op, x, z, number(1), y)
	case "gt", "ge", "eq":
		t := b.temp(Bool, y.Dims...)
		b.call(op, x, z, t)
		b.cast(t, y)
	default:
		b.call(op, x, z, y)
	}
	if b.op.Attrs.Bool("relu") {
		b.call("InplaceRelu", y)
	}
}
