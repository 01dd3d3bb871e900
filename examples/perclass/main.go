// Command perclass trains a small network on a folder of pictures and prints the accuracy of each class meanwhile: go run ./examples/perclass
// PICTURES, or recipes/data/flowers, which comes with gotrain.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/images"
)

// accuracy is the part of each class that is recognised; NaN where there were no samples of it.
func accuracy(v train.Values) train.Tensor {
	out := make([]float64, v["confusion"].Shape[0])
	for i := range out {
		out[i] = v["confusion"].At(i, i) / v["confusion"].Row(i).Sum()
	}
	return train.Vector(out...)
}

func run(ctx context.Context, w io.Writer, root string, epochs float64) (res train.Result, err error) {
	o := images.FolderOptions{Transform: images.ResizeCrop{Short: 36, Width: 32, Height: 32}, Norm: images.ImageNet}
	var sets [2]*images.Folder
	for i, split := range []string{"/train", "/val"} {
		if sets[i], err = images.NewFolder(root+split, o); err != nil {
			return res, err
		}
		o.Classes = sets[i].Classes() // of the training set, for both
	}
	t, err := train.New(train.WithData(sets[0], 16), train.WithEval(sets[1], -1), train.WithEpochs(epochs), train.WithLR(2e-3),
		train.WithOptimizer(optim.Default(optim.AdamW, 0.01)), train.WithModel(func(b *graph.Builder, in train.Inputs) train.Outputs {
			logits := resnet.Build(b, in["image"], resnet.Config{Depth: 18, Classes: len(o.Classes), Width: 16})
			loss, n := b.CrossEntropy(logits, in["label"])
			return train.Outputs{Loss: loss, Count: n, Logits: logits, Sums: map[string]*graph.Node{"confusion": b.ConfusionMatrix(logits, in["label"])},
				Derived: map[string]func(train.Values) train.Tensor{"accuracy": accuracy}}
		}), train.WithOnStep(func(_ context.Context, v *train.StepView) error {
			m, err := v.Metric("accuracy")
			fmt.Fprintf(w, "step %d: loss %.3f, accuracy by class %.2f\n", v.Step, v.Loss, m.Values)
			return err
		}))
	if err != nil {
		return res, err
	}
	return t.Run(ctx)
}

func perclass(args []string, w io.Writer, epochs float64) error {
	if len(args) != 1 {
		return errors.New("usage: perclass PICTURES, with PICTURES/train/CLASS/*.jpg and PICTURES/val/CLASS/*.jpg")
	}
	res, err := run(context.Background(), w, args[0], epochs)
	if err == nil {
		fmt.Fprintf(w, "of %.0f held-out pictures: %.2f\n", res.Eval["items"], res.Values["accuracy"].Values)
	}
	return err
}

func main() {
	if err := perclass(os.Args[1:], os.Stdout, 10); err != nil {
		log.Fatal(err)
	}
}
