package resnet_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/npu"
)

// ResNet-50 for training on batches of 16 photographs.
func Example() {
	b := graph.New()
	x, y := b.Input("image", npu.F32, 16, 3, 224, 224), b.Input("label", npu.I32, 16)
	logits := resnet.Build(b, x, resnet.Config{Depth: 50, ZeroInitLast: true})
	loss, count := b.CrossEntropy(logits, y, graph.Smoothing(0.1))
	b.Loss(loss)
	b.Output("count", count)
	b.Output("top1", b.TopK(logits, y, 1))

	g, err := b.Lower()
	if err != nil {
		fmt.Println(err)
		return
	}
	var n int64
	for _, p := range b.Params() {
		n += p.Shape.Elems()
	}
	fmt.Println(n, "parameters,", len(g.Trained), "tensors,", len(g.Calls), "calls")
	// Output:
	// 25557032 parameters, 161 tensors, 405 calls
}
