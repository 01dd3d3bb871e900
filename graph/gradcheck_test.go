package graph_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// gradCase is one small graph: build gives a tensor of which a random weighting is summed to the loss.
type gradCase struct {
	name   string
	build  func(b *graph.Builder) *graph.Node
	values map[string][]float64
}

func param(b *graph.Builder, name string, shape ...int) *graph.Node {
	return b.Param(name, shape, graph.Zeros())
}

// away keeps values off 0 by at least 0.1, for functions with a kink or a pole there.
func away(name string, n int) []float64 {
	v := graphtest.Random(name, n)
	for i := range v {
		v[i] += math.Copysign(0.1, v[i])
	}
	return v
}

func positive(name string, n int) []float64 {
	v := away(name, n)
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	return v
}

func apply(kind string, a npu.Attrs, shapes ...[]int) func(b *graph.Builder) *graph.Node {
	return func(b *graph.Builder) *graph.Node {
		var in []*graph.Node
		for i, s := range shapes {
			in = append(in, param(b, string(rune('p'+i)), s...))
		}
		return b.Apply(kind, a, in...)[0]
	}
}

func convCases() []gradCase {
	mk := func(name string, x, w []int, a npu.Attrs) gradCase {
		shapes := [][]int{x, w}
		if a["bias"] == true {
			shapes = append(shapes, []int{w[0]})
		}
		return gradCase{name: name, build: apply(npu.Conv2D, a, shapes...)}
	}
	return []gradCase{
		mk("plain", []int{2, 2, 4, 5}, []int{3, 2, 3, 2}, npu.Attrs{}),
		mk(
			"all",
			[]int{1, 4, 6, 5},
			[]int{4, 2, 3, 2},
			npu.Attrs{"stride": []int{2, 1}, "pad": []int{1, 0, 2, 1}, "dilation": []int{1, 2}, "groups": 2, "bias": true},
		),
		mk("relu", []int{1, 2, 3, 3}, []int{2, 2, 2, 2}, npu.Attrs{"relu": true}),
		mk("depthwise", []int{1, 3, 4, 4}, []int{3, 1, 3, 3}, npu.Attrs{"groups": 3, "pad": []int{1, 1, 1, 1}}),
	}
}

func matmulCases() (cs []gradCase) {
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			for _, batch := range [][]int{{}, {2}, {2, 2}} {
				a, b := []int{3, 4}, []int{4, 2}
				if ta {
					a = []int{4, 3}
				}
				if tb {
					b = []int{2, 4}
				}
				at := npu.Attrs{"ta": ta, "tb": tb, "bias": true}
				cs = append(
					cs,
					gradCase{name: npu.Op{Attrs: at}.String(), build: apply(npu.MatMul, at, append(batch, a...), append(batch, b...), []int{2})},
				)
			}
		}
	}
	cs = append(cs, gradCase{name: "linear of rank 3", build: func(b *graph.Builder) *graph.Node {
		return b.Linear(param(b, "x", 2, 3, 4), param(b, "w", 5, 4), param(b, "b", 5))
	}})
	return cs
}

func normCases(kind string) (cs []gradCase) {
	for _, shape := range [][]int{{3, 2, 2, 2}, {4, 3}} {
		for _, a := range []npu.Attrs{{}, {"relu": true}, {"add": true}, {"relu": true, "add": true}} {
			a["eps"] = 1e-3
			cs = append(
				cs,
				gradCase{
					name:   npu.Op{Attrs: a}.String(),
					values: map[string][]float64{"var": positive("var", shape[1])},
					build: func(b *graph.Builder) *graph.Node {
						c := npu.Shape{shape[1]}
						in := []*graph.Node{
							param(b, "x", shape...),
							param(b, "gamma", c...),
							param(b, "beta", c...),
							b.State("mean", c, 0),
							b.State("var", c, 1),
						}
						if a.Bool("add") {
							in = append(in, param(b, "res", shape...))
						}
						return b.Apply(kind, a, in...)[0]
					},
				},
			)
		}
	}
	return cs
}

func unaryCases() (cs []gradCase) {
	for _, fn := range []string{"neg", "exp", "log", "sqrt", "rsqrt", "square", "abs", "recip", "tanh", "sigmoid", "silu", "gelu", "affine"} {
		a, v := npu.Attrs{"fn": fn}, away("p", 6)
		if fn == "affine" {
			a["alpha"], a["beta"] = 1.5, -0.25
		}
		if fn == "log" || fn == "sqrt" || fn == "rsqrt" {
			v = positive("p", 6)
		}
		cs = append(cs, gradCase{fn, apply(npu.Unary, a, []int{2, 3}), map[string][]float64{"p": v}})
	}
	return cs
}

func binaryCases() (cs []gradCase) {
	for _, fn := range []string{"add", "sub", "mul", "div", "max", "min"} {
		for _, s := range [][2][]int{{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3, 1}, {2, 1, 4}}, {{}, {2, 2}}, {{2, 1, 3}, {1, 1}}} {
			for _, relu := range []bool{false, true} {
				n := int(npu.Shape(s[1]).Elems())
				cs = append(cs, gradCase{fn, apply(npu.Binary, npu.Attrs{"fn": fn, "relu": relu}, s[0], s[1]), map[string][]float64{"q": away("q", n)}})
			}
		}
	}
	return cs
}

func reduceCases() (cs []gradCase) {
	for _, fn := range []string{"sum", "mean", "max"} {
		for _, axes := range [][]int{{0}, {1, 2}, {0, 2}, {0, 1, 2}, {}} {
			for _, keep := range []bool{false, true} {
				cs = append(cs, gradCase{name: fn, build: apply(npu.Reduce, npu.Attrs{"fn": fn, "axes": axes, "keep": keep}, []int{2, 3, 2})})
			}
		}
	}
	return cs
}

// labelled makes a case on logits [4 3] with labels, one of them ignored.
func labelled(f func(b *graph.Builder, logits, labels *graph.Node) *graph.Node) gradCase {
	return gradCase{
		values: map[string][]float64{"labels": {2, 0, -7, 1}},
		build: func(b *graph.Builder) *graph.Node {
			return f(b, param(b, "logits", 4, 3), b.Input("labels", npu.I32, 4))
		},
	}
}

// gradCases has a row for each kind that has a gradient.
var gradCases = map[string][]gradCase{
	npu.Conv2D:         convCases(),
	npu.MatMul:         matmulCases(),
	npu.BatchNorm:      normCases(npu.BatchNorm),
	npu.BatchNormInfer: normCases(npu.BatchNormInfer),
	npu.Relu:           {{"", apply(npu.Relu, nil, []int{7}), map[string][]float64{"p": away("p", 7)}}},
	npu.Unary:          unaryCases(),
	npu.Binary:         binaryCases(),
	npu.Reduce:         reduceCases(),
	npu.BroadcastTo: {
		{name: "axis", build: apply(npu.BroadcastTo, npu.Attrs{"shape": []int{2, 3, 2}}, []int{3, 1})},
		{name: "scalar", build: apply(npu.BroadcastTo, npu.Attrs{"shape": []int{2, 2}}, []int{})},
	},
	npu.MaxPool: {
		{
			name: "",
			build: apply(
				npu.MaxPool,
				npu.Attrs{"kernel": []int{3, 2}, "stride": []int{2, 1}, "pad": []int{1, 0, 1, 1}, "dilation": []int{1, 2}},
				[]int{2, 2, 5, 5},
			),
		},
	},
	npu.AvgPool: {
		{name: "", build: apply(npu.AvgPool, npu.Attrs{"kernel": []int{2, 3}, "stride": []int{1, 2}, "pad": []int{0, 1, 1, 1}}, []int{2, 2, 4, 5})},
		{
			name: "with padding",
			build: apply(
				npu.AvgPool,
				npu.Attrs{"kernel": []int{3, 3}, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}, "include_pad": true},
				[]int{1, 2, 4, 4},
			),
		},
	},
	npu.GlobalAvgPool: {{name: "", build: apply(npu.GlobalAvgPool, nil, []int{2, 3, 2, 3})}},
	npu.Softmax:       {{name: "", build: apply(npu.Softmax, nil, []int{2, 2, 4})}},
	npu.LogSoftmax:    {{name: "", build: apply(npu.LogSoftmax, nil, []int{3, 4})}},
	npu.CrossEntropy: {
		labelled(func(b *graph.Builder, x, l *graph.Node) *graph.Node {
			loss, _ := b.CrossEntropy(x, l, graph.IgnoreIndex(-7))
			return loss
		}),
		labelled(func(b *graph.Builder, x, l *graph.Node) *graph.Node {
			loss, count := b.CrossEntropy(x, l, graph.Smoothing(0.2), graph.IgnoreIndex(-7))
			return b.Div(loss, count)
		}),
	},
	npu.Embedding:          embeddingCases(),
	npu.RMSNorm:            rmsNormCases(),
	npu.Rope:               ropeCases(),
	npu.Attention:          attentionCases(),
	npu.SwiGLU:             swiGLUCases(),
	npu.LinearCrossEntropy: linearCrossEntropyCases(),
	npu.Dropout:            {{"", func(b *graph.Builder) *graph.Node { return b.Dropout(param(b, "x", 4, 5), 0.4) }, map[string][]float64{"seed": {42}}}},
	npu.Transpose: {
		{name: "", build: apply(npu.Transpose, npu.Attrs{"perm": []int{2, 0, 1}}, []int{2, 3, 4})},
	},
	npu.Concat:  {{name: "", build: apply(npu.Concat, npu.Attrs{"axis": 1}, []int{2, 1, 2}, []int{2, 3, 2}, []int{2, 2, 2})}},
	npu.Slice:   {{name: "", build: apply(npu.Slice, npu.Attrs{"begin": []int{1, 0}, "end": []int{3, 2}}, []int{4, 3})}},
	npu.Pad:     {{name: "", build: apply(npu.Pad, npu.Attrs{"before": []int{1, 0}, "after": []int{0, 2}}, []int{2, 3})}},
	npu.Reshape: {{name: "", build: apply(npu.Reshape, npu.Attrs{"shape": []int{3, 2}}, []int{2, 3})}},
	npu.Convert: {{name: "", build: func(b *graph.Builder) *graph.Node {
		return b.Cast(b.Square(b.Cast(param(b, "x", 3), npu.F64)), npu.F32)
	}}},
}

// TestGradients compares every kind's gradient rule with central differences. The bound 1e-7 is a hundred times what float64 and a step of 1e-5 leave.
func TestGradients(t *testing.T) {
	for _, kind := range op.Names() {
		if strings.HasPrefix(kind, "test_") {
			continue // registered by other tests
		}
		k, _ := op.Lookup(kind)
		cases := gradCases[kind]
		if (k.Grad != nil) != (len(cases) > 0) {
			t.Errorf("%s: has a gradient rule: %t, rows in the table: %d", kind, k.Grad != nil, len(cases))
		}
		for i, c := range cases {
			b := graph.New()
			y := c.build(b)
			w := b.Input("weights", npu.F32, b.Desc(y).Shape...)
			b.Loss(b.Sum(b.Mul(y, w)))
			g, err := b.Lower()
			if err != nil {
				t.Errorf("%s %d %s: %v", kind, i, c.name, err)
				continue
			}
			found := false
			for _, call := range g.Calls {
				found = found || call.Kind == kind && !call.Back
			}
			if !found {
				t.Errorf("%s %d %s: the graph has no such call", kind, i, c.name)
			}
			if err := graphtest.CheckGrads(g, c.values, 1e-7); err != nil {
				t.Errorf("%s %d %s: %v", kind, i, c.name, err)
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
