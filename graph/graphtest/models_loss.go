package graphtest

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// mean is loss divided by count.
func mean(b *graph.Builder, loss, count *graph.Node) *graph.Node { return b.Div(loss, count) }

func softCrossEntropyCases() []Model {
	target := []float64{0.5, 0.25, 0.25, 0, 0, 0, 2, 0.5, 0, 0.1, 0.2, 0.3}
	return []Model{
		{"a row without targets", func(b *graph.Builder) *graph.Node {
			loss, n := b.CrossEntropy(param(b, "x", 4, 3), b.Input("t", npu.F32, 4, 3))
			return mean(b, loss, n)
		}, map[string][]float64{"t": target}},
		{"class weights", func(b *graph.Builder) *graph.Node {
			loss, n := b.CrossEntropy(param(b, "x", 2, 2, 3), b.Input("t", npu.F32, 2, 2, 3), graph.ClassWeights([]float64{1, 0.5, 3}))
			return mean(b, loss, n)
		}, map[string][]float64{"t": target}},
		labelled(func(b *graph.Builder, x, l *graph.Node) *graph.Node {
			loss, n := b.CrossEntropy(x, l, graph.Smoothing(0.2), graph.IgnoreIndex(-7), graph.ClassWeights([]float64{2, 0.5, 1}))
			return mean(b, loss, n)
		}),
	}
}

func bceCases() []Model {
	return []Model{
		{"all options", func(b *graph.Builder) *graph.Node {
			loss, n := b.BCE(param(b, "x", 3, 2, 2), b.Input("t", npu.F32, 3, 2, 2), graph.RowWeights(b.Input("w", npu.F32, 3)), graph.PosWeight(0.5, 3))
			return mean(b, loss, n)
		}, map[string][]float64{"t": {0, 1, 0.5, 0.25, 1, 1, 0, 0, 1, 0, 0.3, 0.7}, "w": {1, 0, 2.5}}},
		{"threshold, one pos_weight", func(b *graph.Builder) *graph.Node {
			loss, n := b.BCE(param(b, "x", 2, 3), b.Input("t", npu.F32, 2, 3), graph.Threshold(0.2), graph.PosWeight(2), graph.SumElements())
			return mean(b, loss, n)
		}, map[string][]float64{"t": {0, 1, 0.5, 0.2, 0.1, 0.3}}},
		labelled(func(b *graph.Builder, x, l *graph.Node) *graph.Node {
			loss, n := b.BCE(x, l, graph.Smoothing(0.1), graph.IgnoreIndex(-7), graph.ClassWeights([]float64{2, 0.5, 1}))
			return mean(b, loss, n)
		}),
	}
}

func mseCases() []Model {
	return []Model{
		{"both sides", func(b *graph.Builder) *graph.Node {
			loss, n := b.MSE(param(b, "x", 3, 2), param(b, "t", 3, 2))
			return mean(b, loss, n)
		}, nil},
		{"weights", func(b *graph.Builder) *graph.Node {
			loss, n := b.MSE(param(b, "x", 4), b.Input("t", npu.F32, 4), graph.RowWeights(b.Input("w", npu.F32, 4)), graph.SumElements())
			return mean(b, loss, n)
		}, map[string][]float64{"w": {1, 0.5, 0, 2}}},
	}
}
