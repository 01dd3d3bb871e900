package train

import (
	"math"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
)

// weighted is a classifier whose classes have weights; its first logits are zero.
func weighted(weights ...float64) Model {
	return func(b *graph.Builder, in Inputs) Outputs {
		logits := nn.Linear{Out: 4, Init: graph.Zeros(), NoBias: true}.Apply(b, "fc", b.Flatten(in["image"]))
		loss, weight := b.CrossEntropy(logits, in["label"], graph.ClassWeights(weights))
		_, valid := b.OneHot(in["label"], 4)
		return Outputs{Loss: loss, Count: b.Sum(valid), Weight: weight, Metrics: map[string]*graph.Node{"rows": b.Sum(valid)}}
	}
}

// A loss with weights is their weighted mean over the global batch, however that is divided; metrics and items stay those of the rows.
func TestWeightedLoss(t *testing.T) {
	src := images(t, 96)
	run := func(ranks, accumulate, batch int, m Model) []float64 {
		return runRanks(t, ranks, func(int) []Option {
			return []Option{WithModel(m), WithData(src, batch), WithAccumulate(accumulate), WithSteps(6), WithLR(0.05), WithDevice("ref", 1), WithSeed(7),
				WithOptimizer(optim.Default(optim.SGD, 0))}
		})
	}
	want, plain := run(1, 1, 16, weighted(1, 0.25, 5, 2)), run(1, 1, 16, weighted(1, 1, 1, 1))
	if math.Abs(want[0]-math.Log(4)) > 1e-6 || math.Abs(plain[0]-math.Log(4)) > 1e-6 {
		t.Errorf("the mean of equal losses is %g and %g, want %g", want[0], plain[0], math.Log(4))
	}
	if math.Abs(want[5]-plain[5]) < 100*divisionBound {
		t.Errorf("weights make no difference: %g", want[5])
	}
	for name, got := range map[string][]float64{"accumulated": run(1, 4, 4, weighted(1, 0.25, 5, 2)), "on ranks": run(2, 2, 4, weighted(1, 0.25, 5, 2))} {
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= divisionBound) {
				t.Errorf("%s: step %d: loss %.9g, want %.9g", name, i+1, got[i], want[i])
			}
		}
	}
	tr, err := New(WithModel(weighted(1, 0.25, 5, 2)), WithData(src, 16), WithEval(src, 16), WithSteps(1), WithLR(0.05), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 0)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tr.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got["rows"] != 1 || got["items"] != 96 || math.Abs(got["loss"]-math.Log(4)) > 1e-6 {
		t.Errorf("evaluation: %v", got)
	}
}
