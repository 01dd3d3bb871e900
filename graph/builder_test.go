package graph_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// TestStickyError: the first error wins, names layer and line, and all later calls are harmless.
func TestStickyError(t *testing.T) {
	b := graph.New()
	x := b.Input("x", npu.F32, 2, 3, 8, 8)
	var y *graph.Node
	b.In("layer1", func() {
		b.In("0", func() {
			y = b.Conv2D(x, b.Param("weight", npu.Shape{4, 5, 3, 3}, graph.KaimingNormal(graph.FanOut)), nil, graph.Conv{})
		})
	})
	first := b.Err()
	for _, want := range []string{"builder_test.go:", "layer1.0", "conv2d", "3 channels", "wants 5"} {
		if first == nil || !strings.Contains(first.Error(), want) {
			t.Fatalf("error %v lacks %q", first, want)
		}
	}
	_, _ = y.Shape()[3], b.Desc(y).Shape[3]
	y = b.Relu(b.BatchNorm(y, y, y, y, y, 0, 0))
	y, _ = b.CrossEntropy(b.Flatten(b.Add(b.MaxPool(y, graph.Pool{}), y)), y)
	y = b.Dropout(b.Transpose(b.Slice(b.Concat(3, y, y), 9, 1, 2)), 7)
	y = b.Apply("nonsense", nil, y)[4]
	b.Output("y", b.Sum(b.Linear(y, y, nil), 4))
	b.Loss(y)
	b.Param("p", nil, graph.Init{})
	_ = b.Dim(y, 77)
	if err := b.Grad(); err != first {
		t.Errorf("Grad gives %v", err)
	}
	if _, err := b.Lower(); err != first || b.Err() != first {
		t.Errorf("Lower gives %v, Err %v", err, b.Err())
	}
}

// TestErrors: what a caller gets wrong is named.
func TestErrors(t *testing.T) {
	for want, f := range map[string]func(b *graph.Builder, x *graph.Node){
		"unknown kind":             func(b *graph.Builder, x *graph.Node) { b.Apply("conv3d", nil, x) },
		"no attribute \"strid\"":   func(b *graph.Builder, x *graph.Node) { b.Apply(npu.MaxPool, npu.Attrs{"strid": 2}, x) },
		"axis 2":                   func(b *graph.Builder, x *graph.Node) { b.Sum(x, 2) },
		"axis -3":                  func(b *graph.Builder, x *graph.Node) { b.Slice(x, -5, 0, 1) },
		"rank 2":                   func(b *graph.Builder, x *graph.Node) { b.GlobalAvgPool(x) },
		"do not broadcast":         func(b *graph.Builder, x *graph.Node) { b.Add(x, b.Const(npu.F32, 1, 3)) },
		"must be of one type":      func(b *graph.Builder, x *graph.Node) { b.Add(x, b.Const(npu.F64, 1)) },
		"want a float":             func(b *graph.Builder, x *graph.Node) { b.Relu(b.Const(npu.I32, 1)) },
		"4 elements":               func(b *graph.Builder, x *graph.Node) { b.Reshape(x, 3, -1) },
		"has no initialiser":       func(b *graph.Builder, x *graph.Node) { b.Param("p", npu.Shape{2}, graph.Init{}) },
		"requires a shape [out in": func(b *graph.Builder, x *graph.Node) { b.Param("p", npu.Shape{2}, graph.XavierNormal()) },
		"at least 1":               func(b *graph.Builder, x *graph.Node) { b.Input("y", npu.F32, 0) },
		"more than 8 dimensions":   func(b *graph.Builder, x *graph.Node) { b.Input("y", npu.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1) },
		"named twice":              func(b *graph.Builder, x *graph.Node) { b.Output("o", x); b.Output("o", x) },
		"scope name":               func(b *graph.Builder, x *graph.Node) { b.In("a b", func() {}) },
		"made by Builder.State":    func(b *graph.Builder, x *graph.Node) { c := b.Const(npu.F32, 0, 2); b.BatchNorm(x, c, c, c, c, 0, 0) },
		"p is 1, want":             func(b *graph.Builder, x *graph.Node) { b.Dropout(x, 1) },
		"use Builder.Const":        func(b *graph.Builder, x *graph.Node) { b.Apply(npu.Fill, npu.Attrs{"shape": []int{}, "dtype": "f32"}) },
		"raw op: no": func(b *graph.Builder, x *graph.Node) {
			b.Raw(func() (*graph.Node, error) { return nil, errors.New("no") })
		},
		"result of a raw op is a nil node": func(b *graph.Builder, x *graph.Node) { b.Raw(func() (*graph.Node, error) { return nil, nil }) },
		"called within Raw": func(b *graph.Builder, x *graph.Node) {
			b.Raw(func() (*graph.Node, error) { return b.Relu(x), nil })
		},
		"gorgonia: oops": func(b *graph.Builder, x *graph.Node) { b.Raw(func() (*graph.Node, error) { panic("oops") }) },
	} {
		b := graph.New()
		if f(b, b.Input("x", npu.F32, 2, 2)); b.Err() == nil || !strings.Contains(b.Err().Error(), want) {
			t.Errorf("want %q, got %v", want, b.Err())
		}
	}
}

func TestUnreachedParameters(t *testing.T) {
	model := func(opts ...graph.Option) *graph.Builder {
		b := graph.New(opts...)
		w := b.Param("used", npu.Shape{2}, graph.Zeros())
		b.In("head", func() { b.Param("lost", npu.Shape{2}, graph.Zeros()) })
		b.Param("frozen", npu.Shape{2}, graph.Zeros(), graph.Frozen())
		b.Loss(b.Sum(w))
		return b
	}
	_, err := model().Lower()
	if err == nil || !strings.Contains(err.Error(), "head.lost") || strings.Contains(err.Error(), "used,") || strings.Contains(err.Error(), "frozen\"") {
		t.Errorf("error %v", err)
	}
	g, err := model(graph.AllowUnreached()).Lower()
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Trained) != 3 || g.Trained[0].Grad == plan.None || g.Trained[1].Grad != plan.None || g.Trained[2].Grad != plan.None {
		t.Errorf("trained %+v", g.Trained)
	}
}

// TestPruning: what neither an output nor a gradient needs does not run; the gradient of the input is such a thing.
func TestPruning(t *testing.T) {
	b := graph.New()
	x := b.Input("x", npu.F32, 4, 3)
	w := b.Param("w", npu.Shape{2, 3}, graph.Zeros())
	b.Exp(x) // dead
	b.Loss(b.Sum(b.Linear(b.Tanh(x), w, nil)))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range g.Calls {
		kinds = append(kinds, c.Kind)
	}
	if got := strings.Join(kinds, " "); got != "unary matmul reduce broadcast_to matmul" {
		t.Errorf("calls %s", got)
	}
	if last := g.Calls[len(g.Calls)-1]; last.Attrs.Str("out") != "f32" || !last.Back {
		t.Errorf("the weight's gradient is made by %+v", last)
	}
}

func TestRegistry(t *testing.T) {
	b := graph.New()
	b.In("a", func() {
		b.Param("w", npu.Shape{2}, graph.Ones(), graph.NoDecay(), graph.Group("slow"))
		b.State("s", npu.Shape{2}, 3)
		b.In("b.c", func() { b.Param("w", npu.Shape{3}, graph.Ones()) })
	})
	p, s := b.Params(), b.States()
	if len(p) != 2 || p[0].Name != "a.w" || !p[0].NoDecay || p[0].Group != "slow" || p[1].Name != "a.b.c.w" || p[1].NoDecay {
		t.Errorf("params %+v", p)
	}
	if len(s) != 1 || s[0].Name != "a.s" || s[0].Value != 3 || b.Path() != "" {
		t.Errorf("states %+v", s)
	}
}

// TestBatchNormModes: training updates the running statistics in place, evaluation reads them.
func TestBatchNormModes(t *testing.T) {
	build := func(opts ...graph.Option) *graph.Builder {
		b := graph.New(opts...)
		c := npu.Shape{1}
		g, beta := b.Param("g", c, graph.Ones()), b.Param("beta", c, graph.Zeros())
		y := b.BatchNorm(b.Input("x", npu.F32, 4, 1), g, beta, b.State("mean", c, 0), b.State("var", c, 1), 1e-5, 0.5)
		b.Output("y", y)
		return b
	}
	values := map[string][]float64{"x": {0, 2, 4, 6}, "g": {1}, "var": {1}}
	m := run(t, build(), values)
	mean, _ := m.Named("mean")
	v, _ := m.Named("var")
	if mean[0] != 1.5 || v[0] != float64(float32(0.5+0.5*20.0/3)) {
		t.Errorf("running mean %v, variance %v", mean, v)
	}
	m = run(t, build(graph.ForEval()), values)
	y, _ := m.Named("y")
	if mean, _ := m.Named("mean"); mean[0] != 0 || y[3] < 5.99 || y[3] > 6 {
		t.Errorf("evaluation: mean %v, y %v", mean, y)
	}
}

// TestHalfPrecisionNodes: dtypes that Gorgonia does not compute with pass through it, the sums that its Grad inserts included.
func TestHalfPrecisionNodes(t *testing.T) {
	b := graph.New()
	w := b.Param("w", npu.Shape{2, 2}, graph.Zeros())
	h := b.Cast(w, npu.BF16)
	h = b.MatMul(b.Relu(h), b.Add(h, b.Square(h)), false, true)
	b.Loss(b.Sum(b.Cast(h, npu.F32)))
	m := run(t, b, map[string][]float64{"w": {1, 2, -1, 3}})
	// y = relu(h)·(h + h²)ᵀ, summed: by hand.
	if want := []float64{2 + 1*3, 18 + 5*5, 1 * (1 - 2), 18 + 5*7}; !equal(m.Grad("w"), want) {
		t.Errorf("gradient %v, want %v", m.Grad("w"), want)
	}
}
