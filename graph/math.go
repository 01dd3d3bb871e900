package graph

import "github.com/gotrain/gotrain/npu"

// Elementwise arithmetic, with NumPy's broadcasting.

// Add is x + y.
func (b *Builder) Add(x, y *Node) *Node { return b.binary("add", x, y) }

// Sub is x - y.
func (b *Builder) Sub(x, y *Node) *Node { return b.binary("sub", x, y) }

// Mul is x · y.
func (b *Builder) Mul(x, y *Node) *Node { return b.binary("mul", x, y) }

// Div is x / y.
func (b *Builder) Div(x, y *Node) *Node { return b.binary("div", x, y) }

// Maximum is the larger one; of equals the first has the gradient.
func (b *Builder) Maximum(x, y *Node) *Node { return b.binary("max", x, y) }

// Minimum is the smaller one; of equals the first has the gradient.
func (b *Builder) Minimum(x, y *Node) *Node { return b.binary("min", x, y) }

// Greater is 1 where x > y, else 0. No gradient.
func (b *Builder) Greater(x, y *Node) *Node { return b.binary("gt", x, y) }

// GreaterEqual is 1 where x >= y, else 0. No gradient.
func (b *Builder) GreaterEqual(x, y *Node) *Node { return b.binary("ge", x, y) }

// Equal is 1 where x = y, else 0. No gradient.
func (b *Builder) Equal(x, y *Node) *Node { return b.binary("eq", x, y) }

// Relu is max(x, 0).
func (b *Builder) Relu(x *Node) *Node { return b.apply(npu.Relu, nil, []*Node{x}) }

// Neg is -x.
func (b *Builder) Neg(x *Node) *Node { return b.unary("neg", x) }

// Exp is e to the x.
func (b *Builder) Exp(x *Node) *Node { return b.unary("exp", x) }

// Log is the natural logarithm.
func (b *Builder) Log(x *Node) *Node { return b.unary("log", x) }

// Sqrt is the square root.
func (b *Builder) Sqrt(x *Node) *Node { return b.unary("sqrt", x) }

// Rsqrt is 1/√x.
func (b *Builder) Rsqrt(x *Node) *Node { return b.unary("rsqrt", x) }

// Square is x².
func (b *Builder) Square(x *Node) *Node { return b.unary("square", x) }

// Abs is |x|.
func (b *Builder) Abs(x *Node) *Node { return b.unary("abs", x) }

// Recip is 1/x.
func (b *Builder) Recip(x *Node) *Node { return b.unary("recip", x) }

// Tanh is the hyperbolic tangent.
func (b *Builder) Tanh(x *Node) *Node { return b.unary("tanh", x) }

// Sigmoid is 1/(1+e^-x).
func (b *Builder) Sigmoid(x *Node) *Node { return b.unary("sigmoid", x) }

// Silu is x·sigmoid(x).
func (b *Builder) Silu(x *Node) *Node { return b.unary("silu", x) }

// Gelu is x·Φ(x) with the normal distribution's Φ (arXiv 1606.08415): the exact form with erf, PyTorch's default.
func (b *Builder) Gelu(x *Node) *Node { return b.gelu("none", x) }

// GeluTanh is the form of Gelu with tanh, PyTorch's approximate="tanh"; it differs by up to 5e-4.
func (b *Builder) GeluTanh(x *Node) *Node { return b.gelu("tanh", x) }

func (b *Builder) gelu(form string, x *Node) *Node {
	return b.apply(npu.Gelu, npu.Attrs{"approximate": form}, []*Node{x})
}

// Sign is -1, 0 or 1. No gradient.
func (b *Builder) Sign(x *Node) *Node { return b.unary("sign", x) }

func (b *Builder) binary(fn string, x, y *Node) *Node {
	return b.apply(npu.Binary, npu.Attrs{"fn": fn}, []*Node{x, y})
}

func (b *Builder) unary(fn string, x *Node) *Node {
	return b.apply(npu.Unary, npu.Attrs{"fn": fn}, []*Node{x})
}

// Affine is alpha·x + beta.
func (b *Builder) Affine(x *Node, alpha, beta float64) *Node {
	return b.apply(npu.Unary, npu.Attrs{"fn": "affine", "alpha": alpha, "beta": beta}, []*Node{x})
}
