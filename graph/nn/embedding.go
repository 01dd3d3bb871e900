package nn

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Embedding looks up rows of a table, the parameter weight [Vocab Dim]: of ids i32[…] it makes [… Dim]. An id outside 0 … Vocab-1 is an error of the run.
// Where the last layer has the same weights (tied embeddings), declare them with Builder.Param and use Builder.Embedding and Builder.LinearCrossEntropy.
type Embedding struct {
	Vocab, Dim int
	Init       graph.Init // of the weight; the zero value is PyTorch's default, normal with a deviation of 1
	Frozen     bool
}

// Apply implements Layer; x are the ids.
func (e Embedding) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		start := e.Init
		if start == (graph.Init{}) {
			start = graph.Gaussian(1)
		}
		y = b.Embedding(x, b.Param("weight", npu.Shape{e.Vocab, e.Dim}, start, frozen(e.Frozen)...))
	})
	return y
}
