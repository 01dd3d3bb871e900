// Command finetune teaches a pretrained ResNet50 new classes: go run ./examples/finetune weights.safetensors flowers runs/flowers. The stem and two stages keep
// their values, the classifier learns ten times as fast as the rest, evaluation uses an average of the weights, and the best checkpoint is kept.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/images"
)

func finetune(ctx context.Context, cfg resnet.Config, weights, root, out string, epochs, size int) (train.Result, error) {
	trainSet, err := images.NewFolder(filepath.Join(root, "train"),
		images.FolderOptions{Transform: images.RandomResizedCrop{Width: size, Height: size, Flip: 0.5}, Norm: images.ImageNet})
	if err != nil {
		return train.Result{}, err
	}
	valSet, err := images.NewFolder(filepath.Join(root, "val"), images.FolderOptions{Norm: images.ImageNet, Classes: trainSet.Classes(),
		Transform: images.ResizeCrop{Short: size * 8 / 7, Width: size, Height: size}})
	if err != nil {
		return train.Result{}, err
	}
	cfg.Classes = len(trainSet.Classes())
	o := optim.Default(optim.SGD, 1e-4)
	o.EMA = optim.EMA{Decay: 0.99, Warmup: true}
	t, err := train.New(train.WithData(trainSet, 16), train.WithEval(valSet, -1), train.WithEpochs(float64(epochs)), train.WithOptimizer(o), train.WithLR(0.005),
		train.WithModel(func(b *graph.Builder, in train.Inputs) train.Outputs {
			logits := resnet.Build(b, in["image"], cfg)
			loss, n := b.CrossEntropy(logits, in["label"])
			return train.Outputs{Loss: loss, Count: n, Logits: logits, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
		}),
		train.WithNetwork("resnet", cfg), train.WithInitFrom(weights, true), train.WithCheckpoints(out, -1),
		train.WithMonitor(train.Monitor{Metric: "top1", KeepBest: true, Patience: 5}),
		train.WithGroups(train.ParamGroup{Name: "early", Match: train.MatchAny("conv1.*", "bn1.*", "layer1.*", "layer2.*"), Frozen: true},
			train.ParamGroup{Name: "classifier", Match: train.MatchAny("fc.*"), LRFactor: 10}))
	if err != nil {
		return train.Result{}, err
	}
	return t.Run(ctx)
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: finetune WEIGHTS PICTURES RESULTS, with PICTURES/train/CLASS and PICTURES/val/CLASS")
	}
	res, err := finetune(context.Background(), resnet.Config{Depth: 50}, os.Args[1], os.Args[2], os.Args[3], 20, 224)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("best top-1 accuracy: %.1f%% after step %d %s\n", 100*res.Best.Value, res.Best.Step, res.Early)
}
