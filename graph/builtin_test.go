package graph_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

type rawFn = func(x, y *graph.Node) (*graph.Node, error)

// builtins are raw Gorgonia expressions of x and y, both [2 3], with the kinds that they must become.
var builtins = map[string]struct {
	f      rawFn
	kinds  string
	values map[string][]float64
}{
	"add": {f: func(x, y *graph.Node) (*graph.Node, error) { return gorgonia.Add(x, y) }, kinds: "binary"},
	"sub": {f: func(x, y *graph.Node) (*graph.Node, error) { return gorgonia.Sub(x, y) }, kinds: "binary"},
	"mul": {f: func(x, y *graph.Node) (*graph.Node, error) { return gorgonia.HadamardProd(x, y) }, kinds: "binary"},
	"div": {
		f:      func(x, y *graph.Node) (*graph.Node, error) { return gorgonia.HadamardDiv(x, y) },
		kinds:  "binary",
		values: map[string][]float64{"y": graphtest.Away("y", 6)},
	},
	"tanh":    {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Tanh(x) }, kinds: "unary"},
	"sigmoid": {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Sigmoid(x) }, kinds: "unary"},
	"square":  {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Square(x) }, kinds: "unary"},
	"exp":     {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Exp(x) }, kinds: "unary"},
	"neg":     {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Neg(x) }, kinds: "unary"},
	"log": {
		f:      func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Log(x) },
		kinds:  "unary",
		values: map[string][]float64{"x": graphtest.Positive("x", 6)},
	},
	"sqrt": {
		f:      func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Sqrt(x) },
		kinds:  "unary",
		values: map[string][]float64{"x": graphtest.Positive("x", 6)},
	},
	"rectify": {
		f:      func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Rectify(x) },
		kinds:  "fill binary binary",
		values: map[string][]float64{"x": graphtest.Away("x", 6)},
	},
	"matmul": {f: func(x, y *graph.Node) (*graph.Node, error) {
		yt, err := gorgonia.Transpose(y, 1, 0)
		if err != nil {
			return nil, err
		}
		return gorgonia.Mul(x, yt)
	}, kinds: "transpose matmul"},
	"sum":     {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Sum(x, 1) }, kinds: "reduce"},
	"sum all": {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Sum(x) }, kinds: "reduce"},
	"mean":    {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Mean(x) }, kinds: "reduce"},
	"reshape": {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.Reshape(x, tensor.Shape{3, 2}) }, kinds: "reshape"},
	"concat":  {f: func(x, y *graph.Node) (*graph.Node, error) { return gorgonia.Concat(0, x, y) }, kinds: "concat"},
	"softmax": {f: func(x, _ *graph.Node) (*graph.Node, error) { return gorgonia.SoftMax(x) }, kinds: "softmax"},
}

// kindsOf lists the kinds of forward calls in order.
func kindsOf(g *plan.Graph) string {
	var k []string
	for _, c := range g.Calls {
		if !c.Back {
			k = append(k, c.Kind)
		}
	}
	return strings.Join(k, " ")
}

// TestBuiltins: raw ops that have a counterpart become it, and their gradients are right: within 1e-7 where all of the backward pass has kernels, else within
// what central differences in float32 leave.
func TestBuiltins(t *testing.T) {
	for name, c := range builtins {
		b := graph.New(graph.WarnTo(func(string) {}))
		x, y := param(b, "x", 2, 3), param(b, "y", 2, 3)
		z := b.Raw(func() (*graph.Node, error) { return c.f(x, y) })
		loss := b.Sum(b.Mul(z, b.Input("weights", npu.F32, b.Desc(z).Shape...)))
		b.Loss(b.Add(loss, b.Add(b.Sum(x), b.Sum(y))))
		g, err := b.Lower()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if k := kindsOf(g); !strings.HasPrefix(k, c.kinds) || strings.Contains(k, "host") {
			t.Errorf("%s became %s", name, k)
		}
		tol := 1e-7
		for _, call := range g.Calls {
			if call.Host != nil {
				t.Logf("%s: backward on the host: %v", name, call.Attrs)
				tol = 2e-3
			}
		}
		if err := graphtest.CheckGrads(g, c.values, tol); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostFallback: a built-in without a counterpart runs on the host, with one warning that names it.
func TestHostFallback(t *testing.T) {
	var warnings []string
	b := graph.New(graph.WarnTo(func(s string) { warnings = append(warnings, s) }))
	x := param(b, "x", 2, 3)
	z := b.Raw(func() (*graph.Node, error) { return gorgonia.Cube(x) })
	b.Output("z", z)
	b.Output("row", b.Relu(b.Raw(func() (*graph.Node, error) { return gorgonia.Slice(z, nil, gorgonia.S(1)) })))
	b.Loss(b.Sum(z))
	m := run(t, b, map[string][]float64{"x": {1, -2, 3, 4, 5, 6}})
	if _, err := b.Lower(); err != nil {
		t.Fatal(err)
	}
	got, _ := m.Named("z")
	row, _ := m.Named("row")
	if !equal(got, []float64{1, -8, 27, 64, 125, 216}) || !equal(row, []float64{0, 125}) || !equal(m.Grad("x"), []float64{3, 12, 27, 48, 75, 108}) {
		t.Errorf("z %v, row %v, gradient %v", got, row, m.Grad("x"))
	}
	cube := 0
	for _, w := range warnings {
		if strings.Contains(w, "cube") && strings.Contains(w, "node") {
			cube++
		}
	}
	if cube != 1 {
		t.Errorf("%d warnings about cube: %q", cube, warnings)
	}
}

// TestRefusedBuiltins: those that are wrong or merge silently are errors that name the replacement.
func TestRefusedBuiltins(t *testing.T) {
	for want, f := range map[string]func(x *graph.Node) (*graph.Node, error){
		"Builder.Dropout": func(x *graph.Node) (*graph.Node, error) { return gorgonia.Dropout(x, 0.5) },
		"Builder.AvgPool": func(x *graph.Node) (*graph.Node, error) {
			return gorgonia.AveragePool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
		},
		"Builder.GlobalAvgPool": func(x *graph.Node) (*graph.Node, error) { return gorgonia.GlobalAveragePool2D(x) },
		"Builder.BatchNorm": func(x *graph.Node) (*graph.Node, error) {
			y, _, _, _, err := gorgonia.BatchNorm(x, nil, nil, 0.1, 1e-5)
			return y, err
		},
		"Builder.Input": func(x *graph.Node) (*graph.Node, error) {
			return gorgonia.Add(x, gorgonia.GaussianRandomNode(x.Graph(), tensor.Float32, 0, 1, 2, 2, 4, 4))
		},
	} {
		b := graph.New(graph.ForEval())
		x := b.Input("x", npu.F32, 2, 2, 4, 4)
		b.Output("y", b.Raw(func() (*graph.Node, error) { return f(x) }))
		if _, err := b.Lower(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestConstants: uniform ones are filled, others come from the host.
func TestConstants(t *testing.T) {
	b := graph.New(graph.ForEval(), graph.WarnTo(func(string) {}))
	x := b.Input("x", npu.F32, 2)
	b.Output("scalar", b.Raw(func() (*graph.Node, error) { return gorgonia.Mul(x, gorgonia.NewConstant(float32(3))) }))
	tri := tensor.New(tensor.WithBacking([]float32{1, 5}))
	b.Output("tensor", b.Raw(func() (*graph.Node, error) { return gorgonia.Add(x, gorgonia.NewConstant(tri)) }))
	b.Output("own", b.Add(x, b.Const(npu.F32, 0.5, 2)))
	m := run(t, b, map[string][]float64{"x": {1, 2}})
	for name, want := range map[string][]float64{"scalar": {3, 6}, "tensor": {2, 7}, "own": {1.5, 2.5}} {
		if got, _ := m.Named(name); !equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
