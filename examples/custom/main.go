// Command custom trains a custom model with gotrain's trainer: the network in the DSL, real images (the first 2000 of Fashion-MNIST), and everything
// else as in a recipe. Run it from the repository: go run ./examples/custom. Under a launcher it becomes a rank, for example: bin/hcclrun -n 2 go run
// ./examples/custom.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	_ "github.com/gotrain/gotrain/npu/cpu" // the devices to include in the binary
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	_ "github.com/gotrain/gotrain/recipes/data" // embeds the bundled data sets in the binary
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/telemetry"
)

// model is the complete model: a network, its loss, and the metrics to report.
func model(b *graph.Builder, in train.Inputs) train.Outputs {
	x := nn.Conv2D{Out: 16, Kernel: 3, Stride: 2, Pad: 1, Bias: true}.Apply(b, "conv1", in["image"])
	x = nn.Conv2D{Out: 32, Kernel: 3, Stride: 2, Pad: 1, Bias: true}.Apply(b, "conv2", b.Relu(x))
	x = b.Dropout(b.Flatten(b.Relu(x)), 0.2)
	logits := nn.Linear{Out: 10}.Apply(b, "fc", x)
	loss, n := b.CrossEntropy(logits, in["label"])
	return train.Outputs{Loss: loss, Count: n, Logits: logits, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
}

func run(ctx context.Context, w io.Writer, epochs float64) (train.Result, error) {
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
	job, err := train.Join(ctx)
	if err != nil {
		return train.Result{}, err
	}
	defer job.Close()
	lines := telemetry.NewConsole(telemetry.NewTerminal(w, 0, false), telemetry.Identity{Node: job.NodeRank, Rank: job.Rank, World: job.World},
		telemetry.ConsoleOptions{Every: 20})
	t, err := train.New(train.WithJob(job), train.WithModel(model), train.WithData(sets[0], 50), train.WithEval(sets[1], -1), train.WithEpochs(epochs),
		train.WithOptimizer(optim.Default(optim.AdamW, 0.01)), train.WithLR(2e-3), train.WithSinks(lines))
	if err != nil {
		return train.Result{}, err
	}
	return t.Run(ctx)
}

func main() {
	res, err := run(context.Background(), os.Stdout, 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("top-1 accuracy on %.0f held-out images: %.1f%%\n", res.Eval["items"], 100*res.Eval["top1"])
}
