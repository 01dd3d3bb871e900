package graphtest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// Gradients trains nothing: it compiles every model of Models for a device, with activations of a type, and compares loss and gradients with those of the
// reference in float64. It reaches device memory through copies only, so an accelerator can run it. skip gives the reason why a model is left out, or "";
// it may be nil. Models with kinds that the device lacks are skipped, and logged.
//
// Values are such that every type holds them exactly. Results are off by at most 8 roundings of the type (a case rounds its inputs, its output and
// what arrives there, and sums of a few such), of the largest element of the result; in float32 by 64, because sums are made in any order.
func Gradients(t *testing.T, dev npu.Device, act npu.DType, skip func(kind, name string) string) {
	models := Models()
	for _, kind := range slices.Sorted(maps.Keys(models)) {
		for i, m := range models[kind] {
			if skip != nil {
				if why := skip(kind, m.Name); why != "" {
					t.Logf("%s %d %s is left out: %s", kind, i, m.Name, why)
					continue
				}
			}
			t.Run(fmt.Sprint(kind, "/", i, " ", m.Name), func(t *testing.T) { m.onDevice(t, dev, act) })
		}
	}
}

// onDevice compares one model.
func (m Model) onDevice(t *testing.T, dev npu.Device, act npu.DType) {
	g, err := m.Graph().Lower()
	if err != nil {
		t.Fatal(err)
	}
	o := graph.Options{Compute: act}
	if _, err := plan.Build(g, dev, o); err != nil {
		var l *plan.Lacking
		if errors.As(err, &l) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	want := NewF64(g)
	values := map[string][]float64{}
	for _, v := range g.Values {
		if v.Role == plan.Temp {
			continue
		}
		values[v.Name] = m.valuesOf(v)
		if err := want.Set(v.Name, values[v.Name]...); err != nil {
			t.Fatal(err)
		}
	}
	if err := want.Run(); err != nil {
		t.Fatal(err)
	}
	d := On(t, dev, m.Graph(), o, func(name string) []float32 { return narrow(values[name]) })
	for _, v := range g.Values {
		if _, _, ok := d.Prog.Input(v.Name); v.Role != plan.Input || !ok {
			continue
		}
		d.put64(v.Name, values[v.Name])
	}
	d.Run()
	bound := 64.0 / (1 << 24)
	if e := map[npu.DType]float64{npu.BF16: 1.0 / 256, npu.F16: 1.0 / 2048}[act]; e > 0 {
		bound = 8 * e
	}
	loss, err := want.Named("loss")
	if err != nil {
		t.Fatal(err)
	}
	// The loss is a sum of products with weights within ±1, which may cancel.
	near(t, "loss", d.Output("loss"), loss, bound*math.Sqrt(float64(m.weights(g))))
	for name, got := range d.Grads() {
		if w := want.Grad(name); w != nil {
			near(t, "gradient of "+name, got, w, bound)
		}
	}
}

// weights is the number of elements that are summed to the loss.
func (m Model) weights(g *plan.Graph) int64 {
	for _, v := range g.Values {
		if v.Name == "weights" {
			return v.Desc.Shape.Elems()
		}
	}
	return 1
}

// valuesOf are the given values, or random ones; floats are multiples of 1/128, and within ±2 every type holds those.
func (m Model) valuesOf(v plan.Value) []float64 {
	x, given := m.Values[v.Name]
	switch {
	case v.Name == graph.LossScaleInput:
		return []float64{1}
	case !given:
		x = Random(v.Name, int(v.Desc.Shape.Elems()))
	}
	if !v.Desc.DType.IsFloat() {
		return x
	}
	r := make([]float64, len(x))
	for i, e := range x {
		r[i] = math.Round(e*128) / 128
	}
	return r
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// near compares relative to the largest element, but not to less than one.
func near(t *testing.T, what string, got []float32, want []float64, bound float64) {
	t.Helper()
	largest := 1.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= bound*largest) {
			t.Errorf("%s: element %d is %g, must be %g ± %.2g", what, i, got[i], w, bound*largest)
			return
		}
	}
}
