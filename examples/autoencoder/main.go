// Command autoencoder is a regression: a network that squeezes pictures of clothes (Fashion-MNIST) through 16 numbers and is trained by the squared error of
// what comes out. Run it from the repository: go run ./examples/autoencoder.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	_ "github.com/gotrain/gotrain/npu/cpu" // the device to include in the binary
	"github.com/gotrain/gotrain/optim"
	_ "github.com/gotrain/gotrain/recipes/data" // embeds the bundled data sets in the binary
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// model answers a picture with a picture. Rows that fill up a batch have no label and do not count. spread is the error of always answering the mean.
func model(b *graph.Builder, in train.Inputs) train.Outputs {
	x := b.Flatten(in["image"])
	y := nn.MLP{Hidden: []int{128, 16, 128}, Out: b.Dim(x, 1), Act: nn.Gelu}.Apply(b, "net", x)
	_, rows := b.OneHot(in["label"], 10)
	loss, n := b.MSE(y, x, graph.RowWeights(rows))
	spread, _ := b.MSE(b.Affine(x, 0, 0), x, graph.RowWeights(rows))
	return train.Outputs{Loss: loss, Count: n, Metrics: map[string]*graph.Node{"spread": spread}}
}

func run(ctx context.Context, epochs float64) (train.Result, error) {
	dir, err := data.Locate("fashion-mini")
	if err != nil {
		return train.Result{}, err
	}
	var sets [2]*images.IDX
	for i, split := range []string{"train", "test"} {
		if sets[i], err = images.OpenIDX(dir, split, images.IDXOptions{Norm: images.Norm{Mean: [3]float64{0.286}, Std: [3]float64{0.353}}}); err != nil {
			return train.Result{}, err
		}
	}
	t, err := train.New(train.WithModel(model), train.WithData(sets[0], 48), train.WithEval(sets[1], -1), train.WithEpochs(epochs),
		train.WithOptimizer(optim.Default(optim.AdamW, 0.01)), train.WithLR(2e-3))
	if err != nil {
		return train.Result{}, err
	}
	return t.Run(ctx)
}

func main() {
	res, err := run(context.Background(), 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("squared error %.3f, %.0f %% of the variance of held-out pictures\n", res.Eval["loss"], 100*(1-res.Eval["loss"]/res.Eval["spread"]))
}
