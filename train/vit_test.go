package train

import (
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/vit"
	"github.com/gotrain/gotrain/optim"
)

// visionTransformer classifies the pictures of images.
func visionTransformer(dropPath float64) Model {
	return func(b *graph.Builder, in Inputs) Outputs {
		c := vit.Config{Dim: 8, Depth: 2, Heads: 2, Patch: 4, Classes: 4, DropPath: dropPath}
		loss, n := b.CrossEntropy(vit.Build(b, in["image"], c), in["label"])
		return Outputs{Loss: loss, Count: n}
	}
}

// How a global batch is divided among ranks, micro-batches and buckets makes no difference to a vision transformer, nor does recomputation.
func TestVisionTransformerOnRanks(t *testing.T) {
	src := images(t, 96)
	run := func(ranks, accumulate, batch int, more ...Option) []float64 {
		return runRanks(t, ranks, func(int) []Option {
			return append([]Option{WithModel(visionTransformer(0)), WithData(src, batch), WithAccumulate(accumulate), WithSteps(6), WithLR(0.01),
				WithDevice("ref", 1), WithOptimizer(optim.Default(optim.AdamW, 0.05)), WithSeed(7), WithClipNorm(1)}, more...)
		})
	}
	want := run(1, 1, 16)
	if math.Abs(want[0]-want[5]) < 1e-3 {
		t.Fatal("it does not learn:", want)
	}
	small := func(c *Config) { c.BucketMB, c.FirstMB = 0.001, 0.001 }
	for name, got := range map[string][]float64{
		"accumulated": run(1, 4, 4), "two ranks": run(2, 1, 8), "two ranks, accumulated, small buckets": run(2, 2, 4, small),
	} {
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= divisionBound) {
				t.Errorf("%s: step %d: loss %.9g, want %.9g", name, i+1, got[i], want[i])
			}
		}
	}
	if again := run(2, 1, 8, WithRecompute()); !slices.Equal(again, run(2, 1, 8)) {
		t.Error("recomputation changes losses")
	}
}

// A stopped and resumed run of a vision transformer with stochastic depth goes on as one that never stopped.
func TestVisionTransformerResumes(t *testing.T) {
	src := images(t, 50)
	resumesAlike(t, 2, 5, func() []Option {
		return []Option{WithModel(visionTransformer(0.4)), WithData(src, 6), WithSteps(8), WithLR(0.01), WithDevice("ref", 1), WithSeed(11),
			WithOptimizer(optim.Default(optim.AdamW, 0.05))}
	})
}
