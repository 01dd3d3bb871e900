package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
)

// TestDropPathEqualsTimm: values, gradients and the rule for the depth, with the mask that the op defines.
func TestDropPathEqualsTimm(t *testing.T) {
	var f struct {
		Rates []struct {
			Last   float64
			Blocks int
			Rates  []float64
		}
		Cases []struct {
			P           float64
			Layer       int
			Seed        int64
			Shape       npu.Shape
			X, W, Y, DX []float64
		}
	}
	raw, err := os.ReadFile("testdata/droppath.json")
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil || len(f.Cases) < 4 || len(f.Rates) < 3 {
		t.Fatalf("%d cases, %v", len(f.Cases), err)
	}
	for _, r := range f.Rates {
		got := nn.DropPathRates(r.Last, r.Blocks)
		if len(got) != len(r.Rates) {
			t.Fatalf("%d rates, want %d", len(got), len(r.Rates))
		}
		for i, want := range r.Rates {
			if math.Abs(got[i]-want) > 1e-8 { // torch.linspace is float32 here
				t.Errorf("block %d of %d: %g, timm has %g", i, r.Blocks, got[i], want)
			}
		}
	}
	for _, c := range f.Cases {
		b := graph.New()
		x := b.Param("x", c.Shape, graph.Zeros())
		for range c.Layer {
			b.DropPath(x, 0.5) // takes a number
		}
		y := nn.DropPath(c.P).Apply(b, "", x)
		b.Output("y", y)
		b.Loss(b.Sum(b.Mul(y, b.Input("w", npu.F32, c.Shape...))))
		g, err := b.Lower()
		if err != nil {
			t.Fatal(err)
		}
		m := graphtest.NewF64(g)
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(m.Set("x", c.X...))
		check(m.Set("w", c.W...))
		check(m.Set(graph.LossScaleInput, 1))
		if c.P > 0 {
			check(m.Set(graph.SeedInput, float64(c.Seed)))
		}
		check(m.Run())
		got, err := m.Named("y")
		check(err)
		for i, want := range c.Y {
			if d := m.Grad("x")[i] - c.DX[i]; math.Abs(got[i]-want) > 1e-8 || math.Abs(d) > 1e-8 {
				t.Fatalf("p %g, layer %d: y[%d] is %g, timm has %g; its gradient is off by %g", c.P, c.Layer, i, got[i], want, d)
			}
		}
	}
}

// In evaluation nothing is dropped, and no seed is wanted; wrong probabilities are refused.
func TestDropPathInEvaluation(t *testing.T) {
	b := graph.New(graph.ForEval())
	x := b.Input("x", npu.F32, 4, 3)
	if y := b.DropPath(x, 0.5); y != x || b.Err() != nil {
		t.Errorf("not the identity, %v", b.Err())
	}
	for _, p := range []float64{-0.1, 1, math.NaN()} {
		b := graph.New()
		b.DropPath(b.Input("x", npu.F32, 4, 3), p)
		if b.Err() == nil {
			t.Errorf("p = %g: no error", p)
		}
	}
	b = graph.New()
	if b.DropPath(b.Input("x", npu.F32), 0.5); b.Err() == nil {
		t.Error("a scalar has no samples")
	}
}
