package train

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/graph"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
)

// mlp is two linear layers on six numbers.
func mlp(b *graph.Builder, in Inputs) Outputs {
	w1 := b.Param("fc1.weight", []int{64, 6}, graph.KaimingNormal(graph.FanOut))
	b1 := b.Param("fc1.bias", []int{64}, graph.Zeros(), graph.NoDecay())
	w2 := b.Param("fc2.weight", []int{4, 64}, graph.KaimingNormal(graph.FanOut))
	h := b.Relu(b.Linear(in["image"], w1, b1))
	logits := b.Linear(h, w2, nil)
	loss, n := b.CrossEntropy(logits, in["label"])
	return Outputs{Loss: loss, Count: n, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
}

func noise(t *testing.T, n int) data.Source {
	t.Helper()
	src, err := data.NewSynthetic(1, n, 4, 6)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestTrainsToLowLoss(t *testing.T) {
	tr, err := New(WithModel(mlp), WithData(noise(t, 64), 16), WithEval(noise(t, 50), 0), WithEpochs(50), WithLR(0.02),
		WithOptimizer(optim.Default(optim.AdamW, 0)), WithDevice("ref", 1))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if res.Loss > 0.3 || res.Eval["items"] != 50 || res.Eval["top1"] < 0.9 {
		t.Errorf("%+v", res)
	}
}
