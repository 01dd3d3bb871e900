package train

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
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

// poisoned gives NaN for one sample.
type poisoned struct {
	data.Source
	index int
}

func (p poisoned) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	err := p.Source.Load(ctx, r, i, dst)
	if i == p.index {
		data.F32(dst[0])[0] = float32(math.NaN())
	}
	return err
}

func TestNonFiniteLossNamesPlaceAndSample(t *testing.T) {
	tr, err := New(WithModel(mlp), WithData(poisoned{noise(t, 64), 37}, 16), WithSteps(50), WithLR(0.1),
		WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.Run(context.Background())
	if launch.ExitCode(err) != launch.ExitNumerics {
		t.Fatalf("exit code %d: %v", launch.ExitCode(err), err)
	}
	for _, want := range []string{"rank 0", "37", `input "image"`, "hint:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestEveryFaultOfTheConfigurationAtOnce(t *testing.T) {
	_, err := New(WithData(nil, 0), WithClipNorm(-1))
	for _, want := range []string{"no model", "no training data", "batch", "no length", "no learning rate", "gradient norm", "no optimizer"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
