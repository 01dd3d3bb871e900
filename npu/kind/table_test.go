package kind

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// Every constant of npu/kinds.go is in the table, and nothing else is.
func TestEveryKind(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			want = append(want, s)
		}
		return true
	})
	slices.Sort(want)
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("the table has %v\nthe contract %v", got, want)
	}
}

// Positions follow from the attributes: the second gradient of a batch normalisation comes behind y where there is a relu.
func TestArguments(t *testing.T) {
	k := Of(npu.BatchNormBwd)
	for _, c := range []struct {
		a     npu.Attrs
		in    string
		out   string
		pairs [][2]int
	}{
		{nil, "dy x gamma beta mean rstd", "dx dgamma dbeta", [][2]int{{0, 0}}},
		{npu.Attrs{"sum": true}, "dy x gamma beta mean rstd dy2", "dx dgamma dbeta", [][2]int{{0, 0}, {0, 6}}},
		{npu.Attrs{"sum": true, "relu": true, "add": true}, "dy x gamma beta mean rstd y dy2", "dx dgamma dbeta dres", [][2]int{{0, 0}, {3, 0}, {0, 7}, {3, 7}}},
	} {
		names := func(args []Arg) string {
			var s []string
			for _, a := range args {
				s = append(s, a.Name)
			}
			return strings.Join(s, " ")
		}
		if in, out := names(k.Inputs(c.a)), names(k.Outputs(c.a)); in != c.in || out != c.out || !slices.Equal(k.Pairs(c.a), c.pairs) {
			t.Errorf("%s: inputs %s, outputs %s, in place %v", c.a, in, out, k.Pairs(c.a))
		}
	}
}

func TestClasses(t *testing.T) {
	k := Of(npu.BatchNorm)
	a := npu.Attrs{"add": true}
	if k.InClass(a, 0) != Act || k.InClass(a, 4) != Full || k.InClass(a, 5) != Act || k.OutClass(a, 0) != Act || k.OutClass(a, 4) != Full {
		t.Error("batchnorm")
	}
	if in, ok := k.StateOf(a, 4); !ok || in != 4 {
		t.Error("the running variance is no state")
	}
	if _, ok := k.StateOf(a, 0); ok || k.MayBeNil(a, 0) || !k.MayBeNil(a, 2) {
		t.Error("outputs of batchnorm")
	}
	if k = Of(npu.Concat); k.InClass(nil, 5) != Act {
		t.Error("concat takes any number")
	}
	if k = Of(npu.Rope); k.InClass(npu.Attrs{"pos": true}, 1) != Keep {
		t.Error("rope")
	}
	if !Of(npu.Unary).HasFn(npu.Attrs{"fn": "silu"}) || Of(npu.Unary).HasFn(npu.Attrs{"fn": "cosh"}) || !Of(npu.Relu).HasFn(nil) {
		t.Error("functions")
	}
}

// Check is for whole ops: outputs at the end may be missing, others must be right; attributes that only graphs carry are made up.
func TestCheck(t *testing.T) {
	x := f32(2, 3)
	for _, c := range []struct {
		op   npu.Op
		want string
	}{
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x.With("nhwc")}, Out: []npu.Desc{x.With(npu.Any)}}, ""},
		{npu.Op{Kind: npu.MaxPool, Attrs: npu.Attrs{"kernel": []int{1, 1}}, In: []npu.Desc{f32(1, 1, 2, 2)}, Out: []npu.Desc{f32(1, 1, 2, 2)}}, ""},
		{npu.Op{Kind: npu.Reshape, In: []npu.Desc{x}, Out: []npu.Desc{f32(6)}}, ""},
		{npu.Op{Kind: npu.Convert, In: []npu.Desc{x}, Out: []npu.Desc{d(npu.BF16, 2, 3)}}, ""},
		{npu.Op{Kind: npu.MatMul, In: []npu.Desc{bf16(2, 3), bf16(3, 4)}, Out: []npu.Desc{f32(2, 4)}}, ""},
		{npu.Op{Kind: npu.SumSq, In: []npu.Desc{f32(3)}, Out: []npu.Desc{d(npu.F64, 2)}}, ""},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x}}, "has 1 outputs, got 0"},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{x, x}}, "has 1 outputs, got 2"},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{bf16(2, 3)}}, "output 0 is bf16[2 3], must be f32[2 3]"},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{f32(-1)}, Out: []npu.Desc{x}}, "negative dimension"},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{d(npu.Invalid, 1)}, Out: []npu.Desc{x}}, "argument 0 has no dtype"},
		{npu.Op{Kind: npu.SGD, Attrs: npu.Attrs{"has_momentum": true}, In: []npu.Desc{f32(8), f32(3), f32(3), f32(4)}, Out: []npu.Desc{f32(3), f32(3)}}, "a vector is f32[4]"},
		{npu.Op{Kind: npu.LARS, In: []npu.Desc{f32(8), f32(3), f32(3), f32(3), f32(2), f32(2)}, Out: []npu.Desc{f32(3), f32(3)}}, "sw is f32[2], want f64[2]"},
		{npu.Op{Kind: npu.LAMB, In: []npu.Desc{f32(9), f32(3), f32(3), f32(3), f32(2)}, Out: []npu.Desc{f32(3)}}, "s is f32[2], want f64[2]"},
		{npu.Op{Kind: npu.LAMBMoments, In: []npu.Desc{f32(8), f32(3), f32(3), f32(3), f32(3)}, Out: []npu.Desc{d(npu.F64, 2), f32(3), f32(3)}}, "hyper is f32[8]"},
		{npu.Op{Kind: "frobnicate"}, "unknown op kind \"frobnicate\"\nhint: "},
	} {
		err := Check(c.op)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.op.Kind)) {
			t.Errorf("%s: want %q, got %v", c.op, c.want, err)
		}
	}
}

// A wrong entry panics when it is registered, and says why.
func TestBadEntries(t *testing.T) {
	shape := func(_ npu.Attrs, in []npu.Desc) ([]npu.Desc, error) { return in, nil }
	for want, k := range map[string]*Kind{
		"twice":                   {Name: npu.Relu, In: "x", Out: "y", Shape: shape},
		"without name":            {In: "x", Out: "y", Shape: shape},
		"shape rule":              {Name: "a", In: "x", Out: "y"},
		`unknown flag "fulll"`:    {Name: "b", In: "x:fulll", Out: "y", Shape: shape},
		`"k:x" has no type`:       {Name: "c", Attrs: "k:x", In: "x", Out: "y", Shape: shape},
		"y=z names no output":     {Name: "d", In: "x", Out: "y", InPlace: "y=z", Shape: shape},
		`depends on "add", which`: {Name: "e", In: "x res?add", Out: "y", Shape: shape},
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, want) {
					t.Errorf("want a panic with %q, got %q", want, p)
				}
			}()
			Register(k)
		}()
	}
}
