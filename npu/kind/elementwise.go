package kind

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.Relu,
		In:   "x", Out: "y",
		InPlace: "y=x", Shape: alike(1, "x"), Follows: true, Cheap: true,
	})
	Register(&Kind{
		Name: npu.ReluBwd,
		In:   "dy y", Out: "dx",
		InPlace: "dx=dy", Shape: alike(1, "dy", "y"), Follows: true,
	})
	Register(&Kind{
		Name: npu.Unary, Attrs: "fn:s alpha:f beta:f",
		In: "x", Out: "y",
		InPlace: "y=x", Shape: inferUnary, Follows: true, Wide: wideFn, Fns: unaryFns, Cheap: true,
	})
	Register(&Kind{
		Name: npu.Binary, Attrs: "fn:s relu:b",
		In: "a b", Out: "y",
		InPlace: "y=a", Shape: inferBinary, Follows: true, Fns: binaryFns, Cheap: true,
	})
}

var (
	unaryFns  = []string{"abs", "affine", "exp", "log", "neg", "recip", "rsqrt", "sigmoid", "sign", "silu", "sqrt", "square", "tanh"}
	reduceFns = []string{"max", "mean", "sum"}
	binaryFns = []string{"add", "div", "eq", "ge", "gt", "max", "min", "mul", "sub"}
)

// wideFn: these easily leave the range of f16, which ends at 65504, as PyTorch's autocast knows. bf16 has float32's range.
func wideFn(a npu.Attrs) bool {
	return slices.Contains([]string{"exp", "log", "recip", "rsqrt", "square"}, a.Str("fn"))
}

// alike is the rule of kinds whose inputs are floats of one type and shape, and outputs like them.
func alike(outs int, names ...string) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		c := &checker{a: a, in: in}
		c.floats(0)
		for i := 1; i < len(in); i++ {
			c.like(i, 0, names[i], names[0])
		}
		return c.done(slices.Repeat(in[:1], outs)...)
	}
}

func inferUnary(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.floats(0)
	fn := a.Str("fn")
	if c.ok() && !slices.Contains(unaryFns, fn) {
		c.failf("knows no function %q, only %v", fn, unaryFns)
	}
	if _, alpha := a["alpha"]; c.ok() && alpha && fn != "affine" {
		c.failf("attribute alpha belongs to fn affine, not %s", fn)
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func inferBinary(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.floats(0)
	if fn := a.Str("fn"); c.ok() && !slices.Contains(binaryFns, fn) {
		c.failf("knows no function %q, only %v", fn, binaryFns)
	}
	if !c.ok() {
		return nil, c.err
	}
	y, ok := Broadcast(in[0].Shape, in[1].Shape)
	if !ok {
		c.failf("shapes %v and %v do not broadcast", in[0].Shape, in[1].Shape)
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

// Broadcast is NumPy's rule: shapes are aligned at the last axis; extents are equal or one of them is 1.
func Broadcast(a, b npu.Shape) (npu.Shape, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	y := a.Clone()
	for i, n := range b {
		j := len(a) - len(b) + i
		switch {
		case y[j] == 1:
			y[j] = n
		case n != 1 && n != y[j]:
			return nil, false
		}
	}
	return y, true
}
