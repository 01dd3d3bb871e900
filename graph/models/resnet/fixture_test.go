package resnet

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
)

// fixture is a reference run of PyTorch; see testdata/README.md.
type fixture struct {
	tensors map[string][]float64
	meta    struct {
		Config struct {
			Block     string  `json:"block"`
			Depths    [4]int  `json:"depths"`
			Width     int     `json:"width"`
			Classes   int     `json:"classes"`
			Smoothing float64 `json:"label_smoothing"`
		} `json:"config"`
		Losses     []float64          `json:"losses"`
		GradNorm   map[string]float64 `json:"grad_norm"`
		Parameters int64              `json:"parameters"`
	}
}

func load(t *testing.T, name string) *fixture {
	f := &fixture{}
	js, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, &f.meta); err != nil {
		t.Fatal(err)
	}
	if f.tensors, err = graphtest.Reference("testdata/" + name + ".safetensors"); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAgainstPyTorch compares logits, loss, every gradient and the running statistics of a first training step. Both sides compute in float64;
// the bound 1e-6 is the float32 in which the reference is stored.
func TestAgainstPyTorch(t *testing.T) {
	for _, name := range []string{"basic", "bottleneck"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := load(t, name)
			c := f.meta.Config
			b := graph.New()
			x, labels := b.Input("image", npu.F32, 4, 3, 32, 32), b.Input("label", npu.I32, 4)
			logits := Build(b, x, Config{Blocks: c.Depths, Bottleneck: c.Block == "bottleneck", Width: c.Width, Classes: c.Classes, SmallStem: true})
			loss, _ := b.CrossEntropy(logits, labels, graph.Smoothing(c.Smoothing))
			b.Loss(loss)
			b.Output("logits", logits)
			g, err := b.Lower()
			if err != nil {
				t.Fatal(err)
			}
			m := graphtest.NewF64(g)
			var count int64
			set := func(name string, v []float64) {
				if err := m.Set(name, v...); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range b.Params() {
				count += p.Shape.Elems()
				set(p.Name, f.tensors[p.Name])
			}
			for _, s := range b.States() {
				set(s.Name, slices.Repeat([]float64{float64(s.Value)}, int(s.Shape.Elems())))
			}
			set("image", f.tensors["x"])
			set("label", f.tensors["labels"])
			set(graph.LossScaleInput, []float64{0.25}) // the reference's loss is the mean of four
			if err := m.Run(); err != nil {
				t.Fatal(err)
			}
			f.compare(t, m, b, count)
		})
	}
}

func (f *fixture) compare(t *testing.T, m *graphtest.Machine, b *graph.Builder, count int64) {
	const bound = 1e-6
	if count != f.meta.Parameters {
		t.Errorf("%d parameters, want %d", count, f.meta.Parameters)
	}
	got := func(name string) []float64 {
		v, err := m.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if d := graphtest.Distance(got("logits"), f.tensors["logits"]); !(d < bound) {
		t.Errorf("logits differ by %g", d)
	}
	if l := got("loss")[0] / 4; !(math.Abs(l/f.meta.Losses[0]-1) < bound) {
		t.Errorf("loss %g, want %g", l, f.meta.Losses[0])
	}
	grads := 0
	for name, want := range f.tensors {
		if p, ok := strings.CutPrefix(name, "grad."); ok {
			if d := graphtest.Distance(m.Grad(p), want); !(d < bound) {
				t.Errorf("gradient of %s differs by %g", p, d)
			}
			grads++
		}
		if s, ok := strings.CutPrefix(name, "step1."); ok {
			if d := graphtest.Distance(got(s), want); !(d < bound) {
				t.Errorf("%s differs by %g", s, d)
			}
		}
	}
	if grads != len(b.Params()) {
		t.Errorf("%d gradients in the reference for %d parameters", grads, len(b.Params()))
	}
}
