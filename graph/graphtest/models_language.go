package graphtest

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// ids is an input of whole numbers.
func ids(b *graph.Builder, name string, shape ...int) *graph.Node {
	return b.Input(name, npu.I32, shape...)
}

func embeddingCases() []Model {
	return []Model{
		{
			"repeats",
			func(b *graph.Builder) *graph.Node { return b.Embedding(ids(b, "ids", 2, 3), param(b, "w", 5, 4)) },
			map[string][]float64{"ids": {1, 4, 1, 0, 1, 4}},
		},
		{"read twice", func(b *graph.Builder) *graph.Node {
			w := param(b, "w", 3, 2)
			return b.Mul(b.Embedding(ids(b, "ids", 4), w), b.Embedding(ids(b, "more", 4), w))
		}, map[string][]float64{"ids": {0, 1, 2, 0}, "more": {0, 0, 1, 2}}},
		{"tied with the last layer", func(b *graph.Builder) *graph.Node {
			w := param(b, "w", 5, 4)
			loss, _ := b.LinearCrossEntropy(b.Embedding(ids(b, "ids", 2, 3), w), w, ids(b, "labels", 2, 3))
			return loss
		}, map[string][]float64{"ids": {1, 4, 1, 0, 1, 4}, "labels": {4, 1, 0, 1, -100, 2}}},
	}
}

func rmsNormCases() []Model {
	norm := func(shape ...int) func(b *graph.Builder) *graph.Node {
		return func(b *graph.Builder) *graph.Node {
			return b.RMSNorm(param(b, "x", shape...), param(b, "w", shape[len(shape)-1]), 1e-3)
		}
	}
	return []Model{
		{Name: "vector", Build: norm(5)},
		{Name: "matrix", Build: norm(3, 4)},
		{Name: "cube", Build: norm(2, 3, 4)},
		{Name: "of a sum", Build: func(b *graph.Builder) *graph.Node {
			x := b.Add(param(b, "x", 2, 4), param(b, "res", 2, 4))
			return b.Add(x, b.RMSNorm(x, param(b, "w", 4), 1e-3))
		}},
	}
}

func layerNormCases() []Model {
	norm := func(shape ...int) func(b *graph.Builder) *graph.Node {
		d := shape[len(shape)-1]
		return func(b *graph.Builder) *graph.Node {
			return b.LayerNorm(param(b, "x", shape...), param(b, "w", d), param(b, "b", d), 1e-3)
		}
	}
	return []Model{
		{Name: "vector", Build: norm(5)},
		{Name: "matrix", Build: norm(3, 4)},
		{Name: "cube", Build: norm(2, 3, 4)},
		{Name: "without parameters", Build: func(b *graph.Builder) *graph.Node { return b.LayerNorm(param(b, "x", 3, 4), nil, nil, 1e-3) }},
		{Name: "without bias", Build: func(b *graph.Builder) *graph.Node {
			return b.LayerNorm(param(b, "x", 3, 4), param(b, "w", 4), nil, 1e-3)
		}},
		{Name: "of a sum", Build: func(b *graph.Builder) *graph.Node {
			x := b.Add(param(b, "x", 2, 4), param(b, "res", 2, 4))
			return b.Add(x, b.LayerNorm(x, param(b, "w", 4), param(b, "b", 4), 1e-3))
		}},
	}
}

func geluCases() []Model {
	return []Model{
		{Name: "exact", Build: func(b *graph.Builder) *graph.Node { return b.Gelu(param(b, "x", 3, 4)) }},
		{Name: "tanh", Build: func(b *graph.Builder) *graph.Node { return b.GeluTanh(param(b, "x", 3, 4)) }},
		{Name: "of a layer", Build: func(b *graph.Builder) *graph.Node {
			return b.Gelu(b.Linear(param(b, "x", 2, 3), param(b, "w", 4, 3), param(b, "b", 4)))
		}},
	}
}

func ropeCases() (cs []Model) {
	for _, r := range []graph.Rotary{{}, {Theta: 50, Adjacent: true}, {Theta: 50, Factor: 4, Low: 1, High: 4, Original: 64}} {
		cs = append(
			cs,
			Model{Name: "index", Build: func(b *graph.Builder) *graph.Node { return b.Rope(param(b, "x", 2, 3, 2, 6), nil, r) }},
			Model{
				"positions",
				func(b *graph.Builder) *graph.Node { return b.Rope(param(b, "x", 2, 3, 1, 6), ids(b, "pos", 2, 3), r) },
				map[string][]float64{"pos": {0, 1, 70, 5, 5, 2}},
			},
		)
	}
	return append(cs, Model{Name: "inverse", Build: apply(npu.Rope, npu.Attrs{"theta": 50.0, "pairs": "half", "inverse": true}, []int{1, 3, 1, 4})})
}

func attentionCases() (cs []Model) {
	for _, h := range [][2]int{{2, 2}, {4, 2}, {3, 1}} { // each its own key head, two to one, all to one
		heads := func(b *graph.Builder, s, t int) (q, k, v *graph.Node) {
			return param(b, "q", 2, s, h[0], 3), param(b, "k", 2, t, h[1], 3), param(b, "v", 2, t, h[1], 3)
		}
		cs = append(cs,
			Model{Name: "causal", Build: func(b *graph.Builder) *graph.Node {
				q, k, v := heads(b, 4, 4)
				return b.Attention(q, k, v, graph.Attention{Causal: true})
			}},
			Model{Name: "fewer queries", Build: func(b *graph.Builder) *graph.Node {
				q, k, v := heads(b, 2, 5)
				return b.Attention(q, k, v, graph.Attention{Causal: true})
			}},
			Model{"segments", func(b *graph.Builder) *graph.Node {
				q, k, v := heads(b, 4, 4)
				return b.Attention(q, k, v, graph.Attention{Causal: true, Segments: ids(b, "seg", 2, 4)})
			}, map[string][]float64{"seg": {7, 7, 2, 2, 0, 1, 1, 1}}})
	}
	return append(cs,
		Model{Name: "bidirectional", Build: func(b *graph.Builder) *graph.Node {
			return b.Attention(param(b, "q", 1, 4, 2, 3), param(b, "k", 1, 3, 1, 3), param(b, "v", 1, 3, 1, 3), graph.Attention{})
		}},
		Model{"key padding", func(b *graph.Builder) *graph.Node {
			k := param(b, "k", 2, 3, 1, 3)
			return b.Attention(param(b, "q", 2, 2, 2, 3), k, param(b, "v", 2, 3, 1, 3), graph.Attention{Keys: ids(b, "keys", 2, 3)})
		}, map[string][]float64{"keys": {1, 1, 0, 0, 1, 0}}},
		Model{"mask", func(b *graph.Builder) *graph.Node {
			x := param(b, "x", 2, 3, 1, 2)
			return b.Attention(x, x, x, graph.Attention{Causal: true, Mask: ids(b, "mask", 3, 3)})
		}, map[string][]float64{"mask": {1, 1, 1, 1, 0, 1, 0, 1, 1}}},
		Model{Name: "own scale", Build: func(b *graph.Builder) *graph.Node {
			x := param(b, "x", 1, 3, 1, 4)
			return b.Attention(x, x, x, graph.Attention{Scale: 0.7})
		}},
		Model{Name: "of itself", Build: func(b *graph.Builder) *graph.Node {
			x := param(b, "x", 1, 3, 2, 2)
			return b.Attention(b.Rope(x, nil, graph.Rotary{}), x, x, graph.Attention{Causal: true})
		}})
}

func swiGLUCases() []Model {
	return []Model{
		{Name: "", Build: func(b *graph.Builder) *graph.Node { return b.SwiGLU(param(b, "gate", 3, 4), param(b, "up", 3, 4)) }},
		{Name: "of itself", Build: func(b *graph.Builder) *graph.Node {
			x := param(b, "x", 5)
			return b.SwiGLU(x, x)
		}},
	}
}

func linearCrossEntropyCases() []Model {
	return []Model{
		{"sum", func(b *graph.Builder) *graph.Node {
			loss, _ := b.LinearCrossEntropy(param(b, "x", 4, 3), param(b, "w", 5, 3), ids(b, "labels", 4))
			return loss
		}, map[string][]float64{"labels": {4, -100, 0, 4}}},
		{"mean over sequences", func(b *graph.Builder) *graph.Node {
			loss, count := b.LinearCrossEntropy(param(b, "x", 2, 3, 3), param(b, "w", 5, 3), ids(b, "labels", 2, 3), graph.IgnoreIndex(2))
			return b.Div(loss, count)
		}, map[string][]float64{"labels": {4, 2, 0, 4, 2, 1}}},
	}
}
