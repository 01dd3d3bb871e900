package vit_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/vit"
	"github.com/gotrain/gotrain/npu"
)

// DeiT-S for training on batches of 16 photographs.
func Example() {
	b := graph.New()
	c := vit.Sized("deit-s")
	c.DropPath = 0.1
	x, y := b.Input("image", npu.F32, 16, 3, 224, 224), b.Input("label", npu.I32, 16)
	logits := vit.Build(b, x, c)
	loss, count := b.CrossEntropy(logits, y, graph.Smoothing(0.1))
	b.Loss(loss)
	b.Output("count", count)
	var n int64
	for _, p := range b.Params() {
		n += p.Shape.Elems()
	}
	fmt.Println(n, "parameters in", len(b.Params()), "tensors, logits", b.Desc(logits).Shape, b.Err())
	// Output: 22050664 parameters in 152 tensors, logits [16 1000] <nil>
}
