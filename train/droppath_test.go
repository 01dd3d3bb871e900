package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
)

// deepnet has three residual blocks with stochastic depth, all in repeatable blocks of the graph.
func deepnet(p float64) Model {
	return func(b *graph.Builder, in Inputs) Outputs {
		x := b.Relu(nn.Conv2D{Out: 8, Kernel: 3, Pad: 1}.Apply(b, "stem", in["image"]))
		for i, p := range nn.DropPathRates(p, 3) {
			b.Block(fmt.Sprint("block", i), func() {
				y := b.Relu(nn.Conv2D{Out: 8, Kernel: 3, Pad: 1, Bias: true}.Apply(b, "conv", x))
				x = b.Add(x, b.DropPath(b.Tanh(y), p))
			})
		}
		logits := nn.Linear{Out: 4}.Apply(b, "fc", b.GlobalAvgPool(x))
		loss, n := b.CrossEntropy(logits, in["label"])
		return Outputs{Loss: loss, Count: n}
	}
}

// What is dropped is a function of seed, step, micro-batch and rank, as dropout's is: repeats, recomputation and other buckets change nothing. Another division
// of the global batch drops others.
func TestDropPathIsDeterministic(t *testing.T) {
	src := images(t, 96)
	run := func(ranks, accumulate int, more ...Option) []float64 {
		return runRanks(t, ranks, func(int) []Option {
			return append([]Option{WithModel(deepnet(0.6)), WithData(src, 4), WithAccumulate(accumulate), WithSteps(8), WithLR(0.1), WithDevice("ref", 1),
				WithOptimizer(optim.Default(optim.SGD, 1e-3)), WithSeed(7)}, more...)
		})
	}
	want := run(1, 4)
	if none := run(1, 4, WithModel(deepnet(0))); slices.Equal(none, want) {
		t.Fatal("nothing is dropped")
	}
	if other := run(1, 4, WithSeed(8), func(c *Config) { c.NoShuffle = true }); slices.Equal(other, run(1, 4, func(c *Config) { c.NoShuffle = true })) {
		t.Error("the seed makes no difference")
	}
	if again := run(1, 4, WithRecompute()); !slices.Equal(again, want) {
		t.Errorf("recomputed: %v, want %v", again, want)
	}
	two, small := run(2, 2), run(2, 2, func(c *Config) { c.BucketMB, c.FirstMB = 0.0005, 0.0005 })
	if !slices.Equal(run(2, 2), two) {
		t.Error("a repeat on two ranks drops others")
	}
	for i := range two {
		if d := math.Abs(small[i] - two[i]); !(d <= divisionBound) {
			t.Errorf("small buckets: step %d: loss %.9g, want %.9g", i+1, small[i], two[i])
		}
	}
}

// A run that is stopped and resumed drops what one that never stopped does.
func TestDropPathResumes(t *testing.T) {
	src := images(t, 50)
	resumesAlike(t, 2, 5, func() []Option {
		return []Option{WithModel(deepnet(0.6)), WithData(src, 6), WithSteps(8), WithLR(0.02), WithDevice("ref", 1), WithAccumulate(2), WithSeed(11),
			WithOptimizer(optim.Default(optim.AdamW, 1e-3)), WithClipNorm(1)}
	})
}
