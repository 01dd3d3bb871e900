package graphtest

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// labelled makes a case on logits [4 3] with labels, one of them ignored.
func labelled(f func(b *graph.Builder, logits, labels *graph.Node) *graph.Node) Model {
	return Model{
		Values: map[string][]float64{"labels": {2, 0, -7, 1}},
		Build: func(b *graph.Builder) *graph.Node {
			return f(b, param(b, "logits", 4, 3), b.Input("labels", npu.I32, 4))
		},
	}
}

// Models are small models by the kind that they are about: at least one for each kind of this module that has a gradient.
func Models() map[string][]Model {
	return map[string][]Model{
		npu.Conv2D:         convCases(),
		npu.MatMul:         matmulCases(),
		npu.BatchNorm:      normCases(npu.BatchNorm),
		npu.BatchNormInfer: normCases(npu.BatchNormInfer),
		npu.Relu:           {{"", apply(npu.Relu, nil, []int{7}), map[string][]float64{"p": Away("p", 7)}}},
		npu.Unary:          unaryCases(),
		npu.Binary:         binaryCases(),
		npu.Reduce:         reduceCases(),
		npu.BroadcastTo: {
			{Name: "axis", Build: apply(npu.BroadcastTo, npu.Attrs{"shape": []int{2, 3, 2}}, []int{3, 1})},
			{Name: "scalar", Build: apply(npu.BroadcastTo, npu.Attrs{"shape": []int{2, 2}}, []int{})},
		},
		npu.MaxPool: {
			{
				Name: "",
				Build: apply(
					npu.MaxPool,
					npu.Attrs{"kernel": []int{3, 2}, "stride": []int{2, 1}, "pad": []int{1, 0, 1, 1}, "dilation": []int{1, 2}},
					[]int{2, 2, 5, 5},
				),
			},
		},
		npu.AvgPool: {
			{Name: "", Build: apply(npu.AvgPool, npu.Attrs{"kernel": []int{2, 3}, "stride": []int{1, 2}, "pad": []int{0, 1, 1, 1}}, []int{2, 2, 4, 5})},
			{
				Name: "with padding",
				Build: apply(
					npu.AvgPool,
					npu.Attrs{"kernel": []int{3, 3}, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}, "include_pad": true},
					[]int{1, 2, 4, 4},
				),
			},
		},
		npu.GlobalAvgPool: {{Name: "", Build: apply(npu.GlobalAvgPool, nil, []int{2, 3, 2, 3})}},
		npu.Softmax:       {{Name: "", Build: apply(npu.Softmax, nil, []int{2, 2, 4})}},
		npu.LogSoftmax:    {{Name: "", Build: apply(npu.LogSoftmax, nil, []int{3, 4})}},
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
		npu.SoftCrossEntropy:   softCrossEntropyCases(),
		npu.BCE:                bceCases(),
		npu.MSE:                mseCases(),
		npu.Embedding:          embeddingCases(),
		npu.RMSNorm:            rmsNormCases(),
		npu.LayerNorm:          layerNormCases(),
		npu.Gelu:               geluCases(),
		npu.Rope:               ropeCases(),
		npu.Attention:          attentionCases(),
		npu.SwiGLU:             swiGLUCases(),
		npu.LinearCrossEntropy: linearCrossEntropyCases(),
		npu.Dropout: {
			{"", func(b *graph.Builder) *graph.Node { return b.Dropout(param(b, "x", 4, 5), 0.4) }, map[string][]float64{"seed": {42}}},
			{"rows", func(b *graph.Builder) *graph.Node { return b.DropPath(param(b, "x", 6, 3, 2), 0.4) }, map[string][]float64{"seed": {42}}},
		},
		npu.Transpose: {
			{Name: "", Build: apply(npu.Transpose, npu.Attrs{"perm": []int{2, 0, 1}}, []int{2, 3, 4})},
		},
		npu.Concat:  {{Name: "", Build: apply(npu.Concat, npu.Attrs{"axis": 1}, []int{2, 1, 2}, []int{2, 3, 2}, []int{2, 2, 2})}},
		npu.Slice:   {{Name: "", Build: apply(npu.Slice, npu.Attrs{"begin": []int{1, 0}, "end": []int{3, 2}}, []int{4, 3})}},
		npu.Pad:     {{Name: "", Build: apply(npu.Pad, npu.Attrs{"before": []int{1, 0}, "after": []int{0, 2}}, []int{2, 3})}},
		npu.Reshape: {{Name: "", Build: apply(npu.Reshape, npu.Attrs{"shape": []int{3, 2}}, []int{2, 3})}},
		npu.Convert: {{Name: "", Build: func(b *graph.Builder) *graph.Node {
			return b.Cast(b.Square(b.Cast(param(b, "x", 3), npu.F64)), npu.F32)
		}}},
	}
}
