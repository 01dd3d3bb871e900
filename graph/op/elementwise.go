package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.Relu), Grad: gradRelu})
	Register(&Kind{Kind: kind.Of(npu.ReluBwd)})
	Register(&Kind{
		Kind: kind.Of(npu.Unary), Grad: gradUnary,
		DiffWRT: func(a npu.Attrs, n int) []bool { return slices.Repeat([]bool{a.Str("fn") != "sign"}, n) },
	})
	Register(&Kind{
		Kind: kind.Of(npu.Binary), Grad: gradBinary,
		DiffWRT: func(a npu.Attrs, n int) []bool {
			return slices.Repeat([]bool{!slices.Contains([]string{"gt", "ge", "eq"}, a.Str("fn"))}, n)
		},
	})
}

func gradRelu(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.ReluBwd, nil, c.DOut, c.Out[0]))
}

func gradUnary(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	x, y, dy := c.In[0], c.Out[0], c.DOut
	switch fn := c.Attrs.Str("fn"); fn {
	case "neg":
		return r.done(r.unary("neg", dy))
	case "exp":
		return r.done(r.mul(dy, y))
	case "log":
		return r.done(r.binary("div", dy, x))
	case "sqrt":
		return r.done(r.affine(r.binary("div", dy, y), 0.5, 0))
	case "rsqrt": // -y³/2
		return r.done(r.mul(dy, r.affine(r.mul(y, r.unary("square", y)), -0.5, 0)))
	case "square":
		return r.done(r.mul(dy, r.affine(x, 2, 0)))
	case "abs":
		return r.done(r.mul(dy, r.unary("sign", x)))
	case "recip":
		return r.done(r.mul(dy, r.unary("neg", r.unary("square", y))))
	case "tanh":
		return r.done(r.mul(dy, r.affine(r.unary("square", y), -1, 1)))
	case "sigmoid":
		return r.done(r.mul(dy, r.mul(y, r.affine(y, -1, 1))))
	case "silu": // s + y(1-s)
		s := r.unary("sigmoid", x)
		return r.done(r.mul(dy, r.add(s, r.mul(y, r.affine(s, -1, 1)))))
	default: // affine; sign is cut off by DiffWRT
		return r.done(r.affine(dy, c.Attrs.Float("alpha", 1), 0))
	}
}

// gradBinary: of equal operands max and min give the whole gradient to the first.
func gradBinary(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	a, b, g := c.In[0], c.In[1], r.masked(c)
	var ga, gb Ref
	switch c.Attrs.Str("fn") {
	case "add":
		ga, gb = g, g
	case "sub":
		ga, gb = g, r.unary("neg", r.unbroadcast(g, b.Desc().Shape))
	case "mul":
		ga, gb = r.mul(g, b), r.mul(g, a)
	case "div": // db = -g·y/b; a relu that cut y off cut g off too
		ga = r.binary("div", g, b)
		gb = r.unary("neg", r.binary("div", r.mul(g, c.Out[0]), b))
	case "max":
		ga, gb = r.mul(g, r.binary("ge", a, b)), r.mul(g, r.binary("gt", b, a))
	case "min":
		ga, gb = r.mul(g, r.binary("ge", b, a)), r.mul(g, r.binary("gt", a, b))
	}
	return r.done(r.unbroadcast(ga, a.Desc().Shape), r.unbroadcast(gb, b.Desc().Shape))
}
