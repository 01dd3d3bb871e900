package lower

import "github.com/gotrain/gotrain/npu"

var embeddingRules = map[string]rule{
	npu.Embedding:    {lower: lowerEmbedding, needs: []string{"Embedding"}},
	npu.EmbeddingBwd: {lower: lowerEmbeddingBwd, needs: []string{"EmbeddingDenseBackward"}},
}

func lowerEmbedding(b *builder) {
	w, ids, y := b.in(1), b.in(0), b.out(0)
	if w.DType == y.DType {
		b.call("Embedding", w, ids, y)
		return
	}
	t := b.temp(w.DType, y.Dims...)
	b.call("Embedding", w, ids, t)
	b.cast(t, y)
}

// lowerEmbeddingBwd: the operator computes in f32, and writes the whole table.
func lowerEmbeddingBwd(b *builder) {
	dy, dw := b.full(b.in(0)), b.out(0)
	sum := dw
	if b.op.Attrs.Bool("add") {
		sum = b.temp(Float32, dw.Dims...)
	}
	b.call("EmbeddingDenseBackward", dy, b.in(1), dw.Dims[0], -1, false, sum)
	if sum.Base != dw.Base {
		b.call("Add", b.in(2), sum, number(1), dw)
	}
}
