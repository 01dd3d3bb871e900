package nn_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
)

// A small convolutional network for images of 28 by 28 pixels.
func Example() {
	b := graph.New()
	net := nn.Sequential{
		nn.Conv2D{Out: 8, Kernel: 3, Stride: 2, Pad: 1},
		nn.BatchNorm{},
		nn.Relu,
		nn.GlobalAvgPool,
		nn.Linear{Out: 10},
	}
	logits := net.Apply(b, "net", b.Input("image", npu.F32, 32, 1, 28, 28))
	for _, p := range b.Params() {
		fmt.Println(p.Name, p.Shape, p.NoDecay)
	}
	fmt.Println(b.Desc(logits), b.Err())
	// Output:
	// net.0.weight [8 1 3 3] false
	// net.1.weight [8] true
	// net.1.bias [8] true
	// net.4.weight [10 8] false
	// net.4.bias [10] true
	// f32[32 10] <nil>
}

// The ends of a language model: rows of a table go in, the loss of a projection comes out.
func ExampleEmbedding() {
	b := graph.New()
	x := nn.Embedding{Vocab: 512, Dim: 64, Init: graph.Gaussian(0.02)}.Apply(b, "embed", b.Input("tokens", npu.I32, 4, 128))
	x = nn.RMSNorm{Eps: 1e-5}.Apply(b, "norm", x)
	head := b.Param("head.weight", npu.Shape{512, 64}, graph.Gaussian(0.02))
	loss, count := b.LinearCrossEntropy(x, head, b.Input("labels", npu.I32, 4, 128))
	for _, p := range b.Params() {
		fmt.Println(p.Name, p.Shape, p.NoDecay)
	}
	fmt.Println(b.Desc(x), b.Desc(loss), b.Desc(count), b.Err())
	// Output:
	// embed.weight [512 64] false
	// norm.weight [64] true
	// head.weight [512 64] false
	// f32[4 128 64] f32[] f32[] <nil>
}
