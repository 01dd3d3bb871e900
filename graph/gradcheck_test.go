package graph_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

func param(b *graph.Builder, name string, shape ...int) *graph.Node {
	return b.Param(name, shape, graph.Zeros())
}

// TestGradients compares every kind's gradient rule with central differences. The bound 1e-7 is a hundred times what float64 and a step of 1e-5 leave.
func TestGradients(t *testing.T) {
	models := graphtest.Models()
	for _, kind := range op.Names() {
		if strings.HasPrefix(kind, "test_") {
			continue // registered by other tests
		}
		k, _ := op.Lookup(kind)
		cases := models[kind]
		if (k.Grad != nil) != (len(cases) > 0) {
			t.Errorf("%s: has a gradient rule: %t, rows in the table: %d", kind, k.Grad != nil, len(cases))
		}
		for i, c := range cases {
			g, err := c.Graph().Lower()
			if err != nil {
				t.Errorf("%s %d %s: %v", kind, i, c.Name, err)
				continue
			}
			found := false
			for _, call := range g.Calls {
				found = found || call.Kind == kind && !call.Back
			}
			if !found {
				t.Errorf("%s %d %s: the graph has no such call", kind, i, c.Name)
			}
			if err := graphtest.CheckGrads(g, c.Values, 1e-7); err != nil {
				t.Errorf("%s %d %s: %v", kind, i, c.Name, err)
			}
		}
	}
}

// TestTies pins what happens where central differences cannot look.
func TestTies(t *testing.T) {
	for _, c := range []struct {
		build func(b *graph.Builder, x, y *graph.Node) *graph.Node
		x, y  []float64
	}{
		{func(b *graph.Builder, x, y *graph.Node) *graph.Node { return b.Maximum(x, y) }, []float64{1, 1}, []float64{0, 0}},
		{func(b *graph.Builder, x, y *graph.Node) *graph.Node { return b.Minimum(x, y) }, []float64{1, 1}, []float64{0, 0}},
		{func(b *graph.Builder, x, y *graph.Node) *graph.Node {
			return b.Add(b.Max(x), b.Mul(b.Max(y), b.Max(y)))
		}, []float64{0.5, 0.5}, []float64{2, 2}},
	} {
		b := graph.New()
		b.Loss(b.Sum(c.build(b, param(b, "x", 2), param(b, "y", 2))))
		m := run(t, b, map[string][]float64{"x": {2, 2}, "y": {2, 2}})
		if got := [2][]float64{m.Grad("x"), m.Grad("y")}; !equal(got[0], c.x) || !equal(got[1], c.y) {
			t.Errorf("gradients %v, want %v and %v", got, c.x, c.y)
		}
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// run lowers and executes with the given values; whatever is missing stays 0, the loss scale is 1.
func run(t *testing.T, b *graph.Builder, values map[string][]float64) *graphtest.Machine {
	t.Helper()
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	m := graphtest.New(g)
	if m.Has(graph.LossScaleInput) {
		values[graph.LossScaleInput] = []float64{1}
	}
	for n, v := range values {
		if err := m.Set(n, v...); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestNoGradientOnPath: a trained parameter behind an op without a gradient is an error that names the op and the layer, never a silent zero.
func TestNoGradientOnPath(t *testing.T) {
	for name, build := range map[string]func(b *graph.Builder, x *graph.Node) *graph.Node{
		"binary": func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Greater(x, b.Const(npu.F32, 0)) },
		"unary":  func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Sign(x) },
		"topk":   func(b *graph.Builder, x *graph.Node) *graph.Node { return b.TopK(x, b.Input("l", npu.I32, 2), 1) },
		"output 2 of cross_entropy": func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Apply(npu.CrossEntropy, nil, x, b.Input("l", npu.I32, 2))[2]
		},
		"attention_cached": func(b *graph.Builder, x *graph.Node) *graph.Node {
			h := b.Reshape(x, 1, 2, 1, 2)
			return b.AttentionCached(h, h, h, b.Input("pos", npu.I32, 1, 2))
		},
		"convert": func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Cast(b.Apply(npu.MaxPool, npu.Attrs{"kernel": []int{1, 1}}, b.Reshape(x, 1, 1, 2, 2))[1], npu.F32)
		},
	} {
		b := graph.New()
		x := param(b, "x", 2, 2)
		var y *graph.Node
		b.In("head", func() { y = build(b, b.Relu(x)) })
		b.Loss(b.Add(b.Sum(y), b.Sum(x)))
		err := b.Grad()
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `"head"`) || !strings.Contains(err.Error(), "StopGrad") {
			t.Errorf("%s: %v", name, err)
		}
		// The same with StopGrad is allowed.
		b = graph.New()
		x = param(b, "x", 2, 2)
		b.Loss(b.Add(b.Sum(build(b, b.StopGrad(b.Relu(x)))), b.Sum(x)))
		if name != "output 2 of cross_entropy" && name != "topk" && name != "convert" {
			run(t, b, map[string][]float64{})
		} else if _, err := b.Lower(); err != nil {
			t.Errorf("%s behind StopGrad: %v", name, err)
		}
	}
}
