package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// The confusion matrix is that of a loop over the rows with the first of the largest logits, for any number of classes; equal logits are frequent here.
func TestConfusionMatrix(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []int{1, 2, 3, 4, 5, 9, 16, 17, 33} {
		const n = 700
		logits, labels, want, hot := make([]float64, n*c), make([]float64, n), make([]float64, c*c), make([]float64, n*c)
		for i := range n {
			row := logits[i*c:][:c]
			for j := range row {
				row[j] = float64(rnd.IntN(4)) - 2
			}
			best := slices.Index(row, slices.Max(row))
			hot[i*c+best] = 1
			if labels[i] = float64(rnd.IntN(c)); i%5 == 0 {
				labels[i] = -100
				continue
			}
			want[int(labels[i])*c+best]++
		}
		for _, act := range []npu.DType{npu.F32, npu.BF16, npu.F16} {
			b := graph.New()
			x, y := b.Input("x", npu.F32, n, c), ids(b, "y", n)
			b.Output("confusion", b.ConfusionMatrix(x, y))
			b.Output("hot", b.Predictions(x))
			m := runIn(t, b, act, map[string][]float64{"x": logits, "y": labels})
			for name, want := range map[string][]float64{"confusion": want, "hot": hot} {
				if got, err := m.Named(name); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d classes, %v: %s is %v, want %v (%v)", c, act, name, got, want, err)
				}
			}
		}
	}
}

// Tokens are rows as well.
func TestConfusionMatrixOfTokens(t *testing.T) {
	b := graph.New()
	x, y := b.Input("x", npu.F32, 2, 2, 2), ids(b, "y", 2, 2)
	b.Output("confusion", b.ConfusionMatrix(x, y, graph.IgnoreIndex(7)))
	m := run(t, b, map[string][]float64{"x": {1, 0, 0, 1, 0, 1, 5, 5}, "y": {0, 0, 1, 7}})
	if got, err := m.Named("confusion"); err != nil || !slices.Equal(got, []float64{1, 1, 0, 1}) {
		t.Error(got, err)
	}
	b = graph.New()
	b.ConfusionMatrix(b.Input("x", npu.F32, 4, 3), ids(b, "y", 4), graph.Smoothing(0.1))
	if b.Err() == nil {
		t.Error("an option that it has not is taken")
	}
}

// runIn runs a graph with activations in a dtype.
func runIn(t *testing.T, b *graph.Builder, act npu.DType, values map[string][]float64) *graphtest.Machine {
	t.Helper()
	g, err := b.Lower()
	if err == nil && act != npu.F32 {
		g, err = plan.Mixed(g, act)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := graphtest.New(g)
	for n, v := range values {
		if err := m.Set(n, v...); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	return m
}
