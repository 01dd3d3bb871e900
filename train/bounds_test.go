package train

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
)

// mislabelled gives one sample a label outside the classes.
type mislabelled struct {
	data.Source
	at    int
	label int32
}

func (s mislabelled) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	err := s.Source.Load(ctx, r, i, dst)
	if i == s.at {
		data.I32(dst[1])[0] = s.label
	}
	return err
}

func (s mislabelled) Path(i int) string { return fmt.Sprintf("/pictures/%d.jpg", i) }

// A label outside the classes is an error that names the sample and its file, in training and in evaluation; the ignore label is not.
func TestLabelOutsideTheClassesNamesTheSample(t *testing.T) {
	good := images(t, 32)
	run := func(src, eval data.Source) error {
		tr, err := New(WithModel(convnet), WithData(src, 8), WithEval(eval, 0), WithSteps(4), WithLR(0.1), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.SGD, 0)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(context.Background())
		return err
	}
	for _, label := range []int32{4, -1, 1 << 30} {
		bad := mislabelled{good, 13, label}
		want := fmt.Sprintf("sample 13 (/pictures/13.jpg) of %s: label is %d, outside 0…3\nhint: label the model's 4 classes from 0", good.Name(), label)
		if err := run(bad, good); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rank 0 step") {
			t.Errorf("training: %v, want %q", err, want)
		}
		if err := run(good, bad); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "evaluation after step") {
			t.Errorf("evaluation: %v, want %q", err, want)
		}
	}
	if err := run(mislabelled{good, 13, data.Ignore}, good); err != nil {
		t.Errorf("a label that does not count: %v", err)
	}
}

// The error for a missing field lists the fields of the batch.
func TestWrongFieldOfABatch(t *testing.T) {
	for what, model := range map[string]Model{
		"input": func(b *graph.Builder, in Inputs) Outputs {
			loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["picture"])), in["label"])
			return Outputs{Loss: loss, Count: n}
		},
		"label": func(b *graph.Builder, in Inputs) Outputs {
			loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["image"])), in["class"])
			return Outputs{Loss: loss, Count: n}
		},
		"layer": func(b *graph.Builder, in Inputs) Outputs {
			x := nn.Conv2D{Out: 4, Kernel: 3}.Apply(b, "conv", in["pixels"])
			loss, n := b.CrossEntropy(b.GlobalAvgPool(x), in["label"])
			return Outputs{Loss: loss, Count: n}
		},
	} {
		tr, err := New(WithModel(model), WithData(images(t, 32), 8), WithSteps(1), WithLR(0.1), WithDevice("ref", 1), WithOptimizer(optim.Default(optim.SGD, 0)))
		if err == nil {
			_, err = tr.Run(context.Background())
		}
		if want := "use the fields of a batch as the inputs of the model: image f32[2 8 8], label i32[]"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}
