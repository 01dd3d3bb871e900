package train_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// A linear classifier memorises four kinds of noise.
func Example() {
	noise, err := data.NewSynthetic(1, 64, 4, 1, 4, 4) // 64 samples of 4 classes, images of 1 × 4 × 4
	if err != nil {
		fmt.Println(err)
		return
	}
	model := func(b *graph.Builder, in train.Inputs) train.Outputs {
		logits := nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["image"]))
		loss, count := b.CrossEntropy(logits, in["label"])
		return train.Outputs{Loss: loss, Count: count, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
	}
	t, err := train.New(
		train.WithModel(model), train.WithData(noise, 16), train.WithEval(noise, 0), train.WithSteps(60),
		train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithLR(0.1), train.WithDevice("ref", 1),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := t.Run(context.Background())
	fmt.Println(res.Steps, "steps,", res.Eval["top1"]*res.Eval["items"], "of", res.Eval["items"], "right,", err)
	// Output: 60 steps, 64 of 64 right, <nil>
}

// A confusion matrix is added up over the held-out samples; the accuracy of each class follows from it.
func ExampleOutputs() {
	noise, err := data.NewSynthetic(1, 64, 4, 1, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := func(b *graph.Builder, in train.Inputs) train.Outputs {
		logits := nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["image"]))
		loss, count := b.CrossEntropy(logits, in["label"])
		return train.Outputs{Loss: loss, Count: count,
			Sums: map[string]*graph.Node{"confusion": b.ConfusionMatrix(logits, in["label"])},
			Derived: map[string]func(train.Values) train.Tensor{"accuracy": func(v train.Values) train.Tensor {
				out := make([]float64, 4)
				for i := range out {
					out[i] = v["confusion"].At(i, i) / v["confusion"].Row(i).Sum()
				}
				return train.Vector(out...)
			}}}
	}
	t, err := train.New(
		train.WithModel(model), train.WithData(noise, 16), train.WithEval(noise, 0), train.WithSteps(60),
		train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithLR(0.1), train.WithDevice("ref", 1),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := t.Run(context.Background())
	fmt.Println(res.Values["confusion"].Shape, res.Values["accuracy"].Values, err)
	// Output: [4 4] [1 1 1 1] <nil>
}
