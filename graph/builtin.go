package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// lowered is a built-in Gorgonia op as a kind of ours.
type lowered struct {
	kind  string
	attrs npu.Attrs
	in    []*Node
}

// refused lists built-ins that are wrong or that Gorgonia merges although they differ (two dropouts of different p, two batch norms of
// different eps, two random nodes): a model with one would silently train wrongly.
var refused = map[string]string{
	"randomOp": "Builder.Input", "dropoutOp": "Builder.Dropout", "dropoutDiffOp": "Builder.Dropout", "BatchNormOp": "Builder.BatchNorm",
	"batchnormDiffOp": "Builder.BatchNorm", "avgPoolOp": "Builder.AvgPool", "avgPoolDiffOp": "Builder.AvgPool", "globalAveragePoolOp": "Builder.GlobalAvgPool",
}

var (
	builtinBinary = map[string]string{"+ false": "add", "- false": "sub", "⊙ false": "mul", "÷ false": "div", "> true": "gt", ">= true": "ge", "== true": "eq"}
	builtinSwap   = map[string]string{"< true": "gt", "<= true": "ge"}
	builtinUnary  = map[string]string{
		"abs": "abs", "sign": "sign", "exp": "exp", "ln": "log", "neg": "neg", "square": "square", "sqrt": "sqrt", "inv": "recip",
		"invSqrt": "rsqrt", "tanh": "tanh", "sigmoid": "sigmoid",
	}
)

// builtinName is the bare type name of a built-in op; its types are not exported.
func builtinName(n *Node) string {
	t := strings.TrimPrefix(fmt.Sprintf("%T", n.Op()), "*")
	return strings.TrimPrefix(t, "gorgonia.")
}

// lowerBuiltin finds the kind that computes what a built-in does, or says that there is none. Where the kind's own shape rule does not give the
// node's shape and dtype, there is none.
func lowerBuiltin(n *Node) (lowered, bool) {
	want, err := descOf(n)
	if err != nil {
		return lowered{}, false
	}
	l := recognise(n, want)
	if l.kind == "" {
		return l, false
	}
	k, err := op.Lookup(l.kind)
	if err != nil {
		return l, false
	}
	in := make([]npu.Desc, len(l.in))
	for i, x := range l.in {
		if in[i], err = descOf(x); err != nil {
			return l, false
		}
	}
	out, err := k.Infer(l.attrs, in)
	return l, err == nil && out[0].Equal(want)
}

func recognise(n *Node, d npu.Desc) lowered {
	kids, s := children(n), n.Op().String()
	switch builtinName(n) {
	case "constantScalar", "constantTensor":
		if v, ok := uniform(n); ok {
			return lowered{npu.Fill, npu.Attrs{"value": v, "shape": []int(d.Shape), "dtype": d.DType.String()}, nil}
		}
	case "elemBinOp":
		if fn := builtinBinary[s]; fn != "" {
			return lowered{npu.Binary, npu.Attrs{"fn": fn}, kids}
		}
		if fn := builtinSwap[s]; fn != "" {
			return lowered{npu.Binary, npu.Attrs{"fn": fn}, []*Node{kids[1], kids[0]}}
		}
	case "elemUnaryOp":
		if fn := builtinUnary[s]; fn != "" {
			return lowered{npu.Unary, npu.Attrs{"fn": fn}, kids}
		}
	case "sumOp":
		return reduction("sum", strings.TrimPrefix(s, "Σ"), kids)
	case "maxOp":
		return reduction("max", strings.TrimPrefix(s, "MaxAlong"), kids)
	case "linAlgBinOp":
		if a, b, ok := strings.Cut(s, " × "); ok && strings.HasPrefix(a, "A") && strings.HasPrefix(b, "B") {
			return lowered{npu.MatMul, npu.Attrs{"ta": a == "Aᵀ", "tb": b == "Bᵀ", "bias": false}, kids}
		}
	case "reshapeOp":
		return lowered{npu.Reshape, npu.Attrs{"shape": []int(d.Shape)}, kids}
	case "transposeOp":
		if perm, ok := ints(strings.TrimPrefix(s, "Aᵀ")); ok {
			return lowered{npu.Transpose, npu.Attrs{"perm": perm}, kids}
		}
	case "concatOp":
		var axis int
		if _, err := fmt.Sscanf(s, "Concat(axis=%d)", &axis); err == nil {
			return lowered{npu.Concat, npu.Attrs{"axis": axis}, kids}
		}
	case "repeatOp": // a tensor of extent 1, or a scalar, along one axis: what the gradient of a sum brings in
		return lowered{npu.BroadcastTo, npu.Attrs{"shape": []int(d.Shape)}, kids[:1]}
	case "sizeOp":
		if v, err := strconv.Atoi(strings.TrimPrefix(s, "SizeOf=")); err == nil {
			return lowered{npu.Fill, npu.Attrs{"value": float64(v), "shape": []int{}, "dtype": d.DType.String()}, nil}
		}
	case "softmaxOp":
		var axis int
		var log bool
		if _, err := fmt.Sscanf(s, "Softmax{%d, %t}()", &axis, &log); err == nil && (axis == -1 || axis == len(d.Shape)-1) {
			return lowered{map[bool]string{false: npu.Softmax, true: npu.LogSoftmax}[log], nil, kids}
		}
	}
	return lowered{}
}

func reduction(fn, axes string, kids []*Node) lowered {
	if a, ok := ints(axes); ok {
		return lowered{npu.Reduce, npu.Attrs{"fn": fn, "axes": a, "keep": false}, kids}
	}
	return lowered{}
}

// ints parses "[0 1]" and "{0, 1}".
func ints(s string) ([]int, bool) {
	var out []int
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("[]{}, ", r) }) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// uniform is the one value that a constant holds everywhere.
func uniform(n *Node) (float64, bool) {
	c, ok := n.Op().(interface{ Value() gorgonia.Value })
	if !ok {
		return 0, false
	}
	switch v := c.Value().Data().(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	case int32:
		return float64(v), true
	case []float32:
		return allEqual(v)
	case []float64:
		return allEqual(v)
	}
	return 0, false
}

func allEqual[T float32 | float64](v []T) (float64, bool) {
	for _, x := range v {
		if x != v[0] {
			return 0, false
		}
	}
	return float64(v[0]), len(v) > 0
}
