package graph_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// ids is an input of whole numbers.
func ids(b *graph.Builder, name string, shape ...int) *graph.Node {
	return b.Input(name, npu.I32, shape...)
}

// TestLinearCrossEntropyIsBoth: the loss of a projection is the cross-entropy of its logits, and so are its gradients.
func TestLinearCrossEntropyIsBoth(t *testing.T) {
	values := map[string][]float64{"x": graphtest.Random("x", 18), "w": graphtest.Random("w", 15), "labels": {4, -100, 0, 4, 2, 1}}
	var loss, dx, dw [2][]float64
	for i := range 2 {
		b := graph.New()
		x, w, labels := param(b, "x", 2, 3, 3), param(b, "w", 5, 3), ids(b, "labels", 2, 3)
		l, n := b.LinearCrossEntropy(x, w, labels)
		if i == 1 {
			l, n = b.CrossEntropy(b.Linear(x, w, nil), labels)
		}
		b.Loss(b.Div(l, n))
		m := run(t, b, values)
		loss[i], _ = m.Named("loss")
		dx[i], dw[i] = m.Grad("x"), m.Grad("w")
	}
	for _, v := range [][2][]float64{loss, dx, dw} {
		for j := range v[0] {
			if math.Abs(v[0][j]-v[1][j]) > 1e-6 { // float32 logits in between
				t.Fatalf("%v, want %v", v[0], v[1])
			}
		}
	}
}

// TestCacheIsAttention: keys and values written to a cache token by token give what one causal attention over the whole gives.
func TestCacheIsAttention(t *testing.T) {
	const s, h, g, d = 4, 4, 2, 3
	values := map[string][]float64{"q": graphtest.Random("q", s*h*d), "k": graphtest.Random("k", s*g*d), "v": graphtest.Random("v", s*g*d)}
	heads := func(b *graph.Builder) (q, k, v *graph.Node) {
		return b.Input("q", npu.F32, 1, s, h, d), b.Input("k", npu.F32, 1, s, g, d), b.Input("v", npu.F32, 1, s, g, d)
	}
	b := graph.New()
	q, k, v := heads(b)
	b.Output("o", b.Attention(q, k, v, graph.Attention{Causal: true}))
	want, err := run(t, b, values).Named("o")
	if err != nil {
		t.Fatal(err)
	}

	b = graph.New()
	q, k, v = heads(b)
	pos := ids(b, "pos", 1, s)
	keys, vals := b.State("keys", npu.Shape{1, 6, g, d}, 9), b.State("values", npu.Shape{1, 6, g, d}, 9)
	b.Output("o", b.AttentionCached(q, b.CacheWrite(keys, k, pos), b.CacheWrite(vals, v, pos), pos))
	values["pos"] = []float64{0, 1, 2, 3}
	m := run(t, b, values)
	got, err := m.Named("o")
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			t.Fatalf("from the cache %v, at once %v", got, want)
		}
	}
	if kept, err := m.Named("keys"); err != nil || kept[0] != float64(float32(values["k"][0])) {
		t.Errorf("the state holds %v, %v", kept, err)
	}
}

// TestLanguageErrors: mistakes end in the builder's error, which names what is wrong.
func TestLanguageErrors(t *testing.T) {
	f := func(b *graph.Builder, name string, shape ...int) *graph.Node { return b.Input(name, npu.F32, shape...) }
	for want, build := range map[string]func(b *graph.Builder){
		"must be made by Builder.State": func(b *graph.Builder) {
			b.CacheWrite(f(b, "c", 1, 4, 1, 2), f(b, "x", 1, 1, 1, 2), ids(b, "pos", 1, 1))
		},
		"ids is f32, want i32":         func(b *graph.Builder) { b.Embedding(f(b, "ids", 3), param(b, "w", 4, 2)) },
		"heads of odd width":           func(b *graph.Builder) { b.Rope(f(b, "x", 1, 2, 1, 3), nil, graph.Rotary{}) },
		"pos is i32[2]":                func(b *graph.Builder) { b.Rope(f(b, "x", 1, 2, 1, 4), ids(b, "pos", 2), graph.Rotary{}) },
		"scaling wants 0 < low < high": func(b *graph.Builder) { b.Rope(f(b, "x", 1, 2, 1, 4), nil, graph.Rotary{Factor: 8}) },
		"G a divisor of H": func(b *graph.Builder) {
			b.Attention(f(b, "q", 1, 2, 3, 4), f(b, "k", 1, 2, 2, 4), f(b, "v", 1, 2, 2, 4), graph.Attention{})
		},
		"causal: 1 keys for 2 queries": func(b *graph.Builder) {
			b.Attention(f(b, "q", 1, 2, 1, 4), f(b, "k", 1, 1, 1, 4), f(b, "v", 1, 1, 1, 4), graph.Attention{Causal: true})
		},
		"axis -1 of a tensor": func(b *graph.Builder) {
			b.Attention(f(b, "q"), f(b, "k", 1, 1, 1, 4), f(b, "v", 1, 1, 1, 4), graph.Attention{})
		},
		"up is f32[3]":  func(b *graph.Builder) { b.SwiGLU(f(b, "gate", 2), f(b, "up", 3)) },
		"of one type":   func(b *graph.Builder) { b.LinearCrossEntropy(f(b, "x", 2, 3), f(b, "w", 5, 4), ids(b, "l", 2)) },
		"x is a scalar": func(b *graph.Builder) { b.RMSNorm(f(b, "x"), param(b, "w", 1), 1e-5) },
		"attribute scale is -1": func(b *graph.Builder) {
			x := f(b, "x", 1, 2, 1, 4)
			b.Attention(x, x, x, graph.Attention{Scale: -1})
		},
		"segments want as many keys": func(b *graph.Builder) {
			k := f(b, "k", 1, 3, 1, 4)
			b.Attention(f(b, "q", 1, 2, 1, 4), k, k, graph.Attention{Segments: ids(b, "seg", 1, 2)})
		},
		"layernorm: w is f32[3]": func(b *graph.Builder) { b.LayerNorm(f(b, "x", 2, 4), param(b, "w", 3), nil, 1e-5) },
		"layernorm: b is f32[3]": func(b *graph.Builder) { b.LayerNorm(f(b, "x", 2, 4), nil, param(b, "b", 3), 1e-5) },
	} {
		b := graph.New()
		build(b)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestEmbeddingRounds: mixed precision keeps the table in float32 and rounds the rows that are read at once, so that all that follows is bfloat16; the
// gradient of the table ends in float32.
func TestEmbeddingRounds(t *testing.T) {
	if k, err := op.Lookup(npu.Embedding); err != nil || !k.Rounds {
		t.Fatalf("%v: Embedding does not round", err)
	}
	b := graph.New()
	w := param(b, "w", 5, 4)
	x := b.Embedding(ids(b, "ids", 2, 3), w)
	x = b.Add(x, b.RMSNorm(x, param(b, "n", 4), 1e-5))
	loss, _ := b.LinearCrossEntropy(x, w, ids(b, "labels", 2, 3))
	b.Loss(loss)
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	if g, err = plan.Mixed(g, npu.BF16); err != nil {
		t.Fatal(err)
	}
	desc := func(id plan.ID) npu.Desc { return g.Values[id].Desc }
	seen := map[string]int{}
	for i, c := range g.Calls {
		seen[c.Kind]++
		switch c.Kind {
		case npu.Embedding:
			next := g.Calls[i+1]
			if desc(c.In[1]).DType != npu.F32 || next.Kind != npu.Convert || next.In[0] != c.Out[0] || desc(next.Out[0]).DType != npu.BF16 {
				t.Errorf("embedding of %s, then %s to %s; want an f32 table, and its rows converted to bf16", desc(c.In[1]), next.Kind, desc(next.Out[0]))
			}
		case npu.EmbeddingBwd, npu.LinearCrossEntropyBwd:
			if desc(c.In[0]).DType != npu.BF16 {
				t.Errorf("%s takes %s", c.Kind, desc(c.In[0]))
			}
		case npu.Binary, npu.RMSNorm, npu.LinearCrossEntropy:
			if x := desc(c.In[0]); len(x.Shape) > 1 && x.DType != npu.BF16 && x.Shape[0] != 5 { // the two gradients of the table are added in float32
				t.Errorf("%s %q computes on %s", c.Kind, c.Name, x)
			}
		}
	}
	for _, k := range []string{npu.Embedding, npu.EmbeddingBwd, npu.RMSNorm, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd} {
		if seen[k] == 0 {
			t.Errorf("no %s in the graph", k)
		}
	}
	for _, p := range g.Trained {
		if d := desc(p.Grad); d.DType != npu.F32 {
			t.Errorf("gradient of %s is %s", g.Values[p.Param].Name, d)
		}
	}
}
