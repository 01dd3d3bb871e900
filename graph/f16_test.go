package graph_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// TestGradientsInF16 computes the gradients of every kind with activations in f16 and a loss scale of 1024, and compares them with float64's. A number of
// f16 has 11 bits, so each rounding is off by at most 2^-11; a case rounds its inputs, its output and what arrives there, and sums of a few such: the
// bound is 8 roundings, of the largest gradient of its parameter.
func TestGradientsInF16(t *testing.T) {
	const scale, bound = 1024, 8.0 / 2048
	for _, kind := range op.Names() {
		if strings.HasPrefix(kind, "test_") {
			continue
		}
		for i, c := range graphtest.Models()[kind] {
			g, err := c.Graph().Lower()
			if err != nil {
				t.Fatalf("%s %d %s: %v", kind, i, c.Name, err)
			}
			half, err := plan.Mixed(g, npu.F16)
			if err != nil {
				t.Fatalf("%s %d %s: %v", kind, i, c.Name, err)
			}
			exact, low := graphtest.NewF64(g), graphtest.New(half)
			fill(t, exact, g, c.Values, 1)
			fill(t, low, half, c.Values, scale)
			for _, p := range g.Trained {
				name := g.Values[p.Param].Name
				want, got, largest := exact.Grad(name), low.Grad(name), 0.0
				for _, v := range want {
					largest = max(largest, math.Abs(v))
				}
				for j := range want {
					if d := math.Abs(got[j]/scale - want[j]); !(d <= bound*largest) {
						t.Errorf("%s %d %s: gradient of %s[%d] is %g in f16, %g in f64: off by %.2g of the largest", kind, i, c.Name, name, j, got[j]/scale, want[j], d/largest)
						break
					}
				}
			}
		}
	}
}

// fill gives every leaf values that f16 holds exactly, and runs the graph.
func fill(t *testing.T, m *graphtest.Machine, g *plan.Graph, values map[string][]float64, scale float64) {
	t.Helper()
	for _, v := range g.Values {
		if v.Role == plan.Temp {
			continue
		}
		x, ok := values[v.Name]
		switch n := int(v.Desc.Shape.Elems()); {
		case v.Name == graph.LossScaleInput:
			x = []float64{scale}
		case !ok && v.Desc.DType.IsFloat():
			x = graphtest.Random(v.Name, n)
			for i := range x {
				x[i] = math.Round(x[i]*512) / 512
			}
		case !ok:
			x = make([]float64, n)
		}
		if err := m.Set(v.Name, x...); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
}

// Sums, exponentials and squares leave the range of f16 where their inputs do not: they stay float32 then, also when they are in the middle of a model.
// With bf16, which has float32's range, they follow their input.
func TestF16KeepsWhatGrowsInFloat32(t *testing.T) {
	for name, f := range map[string]func(b *graph.Builder, x *graph.Node) *graph.Node{
		"sum":    func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Sum(x) },
		"exp":    func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Sum(b.Exp(x)) },
		"square": func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Sum(b.Square(x)) },
	} {
		b := graph.New()
		x, w := b.Input("x", npu.F32, 4, 8), param(b, "w", 8, 8)
		b.Loss(f(b, b.Linear(x, w, nil)))
		g, err := b.Lower()
		if err != nil {
			t.Fatal(name, err)
		}
		half, err := plan.Mixed(g, npu.F16)
		if err != nil {
			t.Fatal(name, err)
		}
		m := graphtest.New(half)
		values := map[string][]float64{"w": make([]float64, 64), "x": make([]float64, 32)}
		for i := range 8 {
			values["w"][9*i] = 1
		}
		for i := range 32 {
			values["x"][i] = 12 // e^12 is 162755
			if name != "exp" {
				values["x"][i] = 3000 // 32 of them are 96000, the square is 9e6
			}
		}
		fill(t, m, half, values, 1.0/8) // the gradient of e^x is as large as the value, and must fit
		loss, err := m.Named("loss")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{"sum": 96000, "exp": 32 * math.Exp(12), "square": 32 * 9e6}[name]
		if math.Abs(loss[0]-want) > 1e-5*want {
			t.Errorf("%s: the loss is %g, want %g", name, loss[0], want)
		}
		for _, v := range m.Grad("w") {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: the gradient is not finite", name)
				break
			}
		}
	}
}
