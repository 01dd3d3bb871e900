package graphtest

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

func apply(kind string, a npu.Attrs, shapes ...[]int) func(b *graph.Builder) *graph.Node {
	return func(b *graph.Builder) *graph.Node {
		var in []*graph.Node
		for i, s := range shapes {
			in = append(in, param(b, string(rune('p'+i)), s...))
		}
		return b.Apply(kind, a, in...)[0]
	}
}

func convCases() []Model {
	mk := func(name string, x, w []int, a npu.Attrs) Model {
		shapes := [][]int{x, w}
		if a["bias"] == true {
			shapes = append(shapes, []int{w[0]})
		}
		return Model{Name: name, Build: apply(npu.Conv2D, a, shapes...)}
	}
	return []Model{
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

func matmulCases() (cs []Model) {
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
					Model{Name: npu.Op{Attrs: at}.String(), Build: apply(npu.MatMul, at, append(batch, a...), append(batch, b...), []int{2})},
				)
			}
		}
	}
	cs = append(cs, Model{Name: "linear of rank 3", Build: func(b *graph.Builder) *graph.Node {
		return b.Linear(param(b, "x", 2, 3, 4), param(b, "w", 5, 4), param(b, "b", 5))
	}})
	return cs
}

func normCases(kind string) (cs []Model) {
	for _, shape := range [][]int{{3, 2, 2, 2}, {4, 3}} {
		for _, a := range []npu.Attrs{{}, {"relu": true}, {"add": true}, {"relu": true, "add": true}} {
			a["eps"] = 1e-3
			cs = append(
				cs,
				Model{
					Name:   npu.Op{Attrs: a}.String(),
					Values: map[string][]float64{"var": Positive("var", shape[1])},
					Build: func(b *graph.Builder) *graph.Node {
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

func unaryCases() (cs []Model) {
	for _, fn := range []string{"neg", "exp", "log", "sqrt", "rsqrt", "square", "abs", "recip", "tanh", "sigmoid", "silu", "affine"} {
		a, v := npu.Attrs{"fn": fn}, Away("p", 6)
		if fn == "affine" {
			a["alpha"], a["beta"] = 1.5, -0.25
		}
		if fn == "log" || fn == "sqrt" || fn == "rsqrt" {
			v = Positive("p", 6)
		}
		cs = append(cs, Model{fn, apply(npu.Unary, a, []int{2, 3}), map[string][]float64{"p": v}})
	}
	return cs
}

func binaryCases() (cs []Model) {
	for _, fn := range []string{"add", "sub", "mul", "div", "max", "min"} {
		for _, s := range [][2][]int{{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3, 1}, {2, 1, 4}}, {{}, {2, 2}}, {{2, 1, 3}, {1, 1}}} {
			for _, relu := range []bool{false, true} {
				n := int(npu.Shape(s[1]).Elems())
				cs = append(cs, Model{fn, apply(npu.Binary, npu.Attrs{"fn": fn, "relu": relu}, s[0], s[1]), map[string][]float64{"q": Away("q", n)}})
			}
		}
	}
	return cs
}

func reduceCases() (cs []Model) {
	for _, fn := range []string{"sum", "mean", "max"} {
		for _, axes := range [][]int{{0}, {1, 2}, {0, 2}, {0, 1, 2}, {}} {
			for _, keep := range []bool{false, true} {
				cs = append(cs, Model{Name: fn, Build: apply(npu.Reduce, npu.Attrs{"fn": fn, "axes": axes, "keep": keep}, []int{2, 3, 2})})
			}
		}
	}
	return cs
}
