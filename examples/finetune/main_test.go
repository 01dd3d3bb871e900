package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/optim"
	_ "github.com/gotrain/gotrain/recipes/data"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/predict"
)

// pretrained writes the weights of a small network for three classes.
func pretrained(t *testing.T, cfg resnet.Config) string {
	t.Helper()
	cfg.Classes = 3
	src, err := data.NewSynthetic(1, 32, 3, 3, 32, 32)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tr, err := train.New(train.WithData(src, 16), train.WithSteps(2), train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithLR(0.01),
		train.WithCheckpoints(dir, 0), train.WithModel(func(b *graph.Builder, in train.Inputs) train.Outputs {
			loss, n := b.CrossEntropy(resnet.Build(b, in["image"], cfg), in["label"])
			return train.Outputs{Loss: loss, Count: n}
		}))
	if err == nil {
		_, err = tr.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "step-00000002")
}

func conv1(t *testing.T, dir string) []float32 {
	t.Helper()
	set, err := safetensors.OpenSet(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	v, err := set.Float32s("conv1.weight")
	if err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), v...)
}

// The frozen stem keeps its values, the best checkpoint exists, and it predicts.
func TestFinetune(t *testing.T) {
	root, err := data.Locate("flowers")
	if err != nil {
		t.Fatal(err)
	}
	cfg, out := resnet.Config{Depth: 18, Width: 8}, t.TempDir()
	from := pretrained(t, cfg)
	res, err := finetune(t.Context(), cfg, from, root, out, 1, 32)
	if err != nil {
		t.Fatal(err)
	}
	best, err := os.ReadFile(filepath.Join(out, "best"))
	if err != nil || res.Best == nil || res.Best.Metric != "top1" {
		t.Fatalf("%+v: %q %v", res, best, err)
	}
	dir := filepath.Join(out, string(best[:len(best)-1]))
	was, is := conv1(t, from), conv1(t, dir)
	for i := range was {
		if was[i] != is[i] {
			t.Fatalf("the frozen stem changed at %d: %g -> %g", i, was[i], is[i])
		}
	}
	m, err := predict.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pictures, err := filepath.Glob(filepath.Join(root, "val", "*", "*.jpg"))
	if err != nil || len(pictures) == 0 {
		t.Fatal(err)
	}
	r, err := m.Predict(t.Context(), predict.File(pictures[0]))
	if err != nil || r[0].Err != nil || len(r[0].Logits) != 5 || r[0].Top(1)[0].Name == "" {
		t.Errorf("%+v %v", r, err)
	}
}
