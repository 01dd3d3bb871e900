package graph_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// A linear classifier, lowered: what a compiler or a test sees.
func Example() {
	b := graph.New()
	x, y := b.Input("x", npu.F32, 8, 4), b.Input("y", npu.I32, 8)
	var logits *graph.Node
	b.In("fc", func() {
		w := b.Param("weight", npu.Shape{3, 4}, graph.LeCunUniform())
		bias := b.Param("bias", npu.Shape{3}, graph.Zeros(), graph.NoDecay())
		logits = b.Linear(x, w, bias)
	})
	loss, count := b.CrossEntropy(logits, y)
	b.Loss(loss)
	b.Output("count", count)

	g, err := b.Lower() // adds the backward pass
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range g.Calls {
		fmt.Printf("%q %s back=%t\n", c.Name, c.Kind, c.Back)
	}
	for _, t := range g.Trained {
		fmt.Println(g.Values[t.Param].Name, g.Values[t.Grad].Desc)
	}
	// Output:
	// "fc" matmul back=false
	// "" cross_entropy back=false
	// "" cross_entropy_bwd back=true
	// "fc" matmul back=true
	// "fc" reduce back=true
	// fc.weight f32[3 4]
	// fc.bias f32[3]
}

// A raw Gorgonia op between the Builder's own.
func ExampleBuilder_Raw() {
	b := graph.New()
	w := b.Param("w", npu.Shape{2}, graph.Zeros())
	y := b.Raw(func() (*graph.Node, error) { return gorgonia.Tanh(w) })
	b.Loss(b.Sum(b.Square(y)))

	g, err := b.Lower()
	if err != nil {
		fmt.Println(err)
		return
	}
	m := graphtest.New(g) // executes in plain Go
	_ = m.Set(graph.LossScaleInput, 1)
	_ = m.Set("w", 0, 0.5)
	fmt.Println(m.Run())
	loss, _ := m.Named("loss")
	fmt.Printf("loss %.4f, gradient %.4f\n", loss, m.Grad("w"))
	// Output:
	// <nil>
	// loss [0.2136], gradient [0.0000 0.7269]
}

// Errors are sticky and name the layer.
func ExampleBuilder_Err() {
	b := graph.New()
	x := b.Input("x", npu.F32, 8, 4)
	b.In("head", func() {
		x = b.GlobalAvgPool(x) // wants [N C H W]
	})
	b.Output("y", b.Relu(x))
	fmt.Println(b.Err())
	// Output:
	// graph: example_test.go:75: head: gap: x has rank 2 (shape [8 4]), want 4
}

func ExampleInit_Fill() {
	v := make([]float32, 2*8)
	err := graph.XavierUniform().Fill(v, npu.Shape{2, 8}, 1, "fc.weight")
	fmt.Printf("%.3f %v\n", v[:3], err)
	// Output:
	// [-0.613 -0.466 0.521] <nil>
}
