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
