package resnet

import (
	"encoding/binary"
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
	f := &fixture{tensors: map[string][]float64{}}
	js, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, &f.meta); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/" + name + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(raw)
	header := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	delete(header, "__metadata__")
	for k, m := range header {
		var e struct {
			DType   string
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(m, &e); err != nil {
			t.Fatal(err)
		}
		f.tensors[k] = decode(t, e.DType, raw[8+int(n):][e.Offsets[0]:e.Offsets[1]])
	}
	return f
}

func decode(t *testing.T, dtype string, b []byte) (v []float64) {
	le := binary.LittleEndian
	for len(b) > 0 {
		switch dtype {
		case "BF16":
			v, b = append(v, float64(math.Float32frombits(uint32(le.Uint16(b))<<16))), b[2:]
		case "F32":
			v, b = append(v, float64(math.Float32frombits(le.Uint32(b)))), b[4:]
		case "I32":
			v, b = append(v, float64(int32(le.Uint32(b)))), b[4:]
		default:
			t.Fatalf("dtype %s", dtype)
		}
	}
	return v
}

// off is the distance of two vectors relative to the norm of the second.
func off(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var d, n float64
	for i := range got {
		d += (got[i] - want[i]) * (got[i] - want[i])
		n += want[i] * want[i]
	}
	return math.Sqrt(d / n)
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
	if d := off(got("logits"), f.tensors["logits"]); !(d < bound) {
		t.Errorf("logits differ by %g", d)
	}
	if l := got("loss")[0] / 4; !(math.Abs(l/f.meta.Losses[0]-1) < bound) {
		t.Errorf("loss %g, want %g", l, f.meta.Losses[0])
	}
	grads := 0
	for name, want := range f.tensors {
		if p, ok := strings.CutPrefix(name, "grad."); ok {
			if d := off(m.Grad(p), want); !(d < bound) {
				t.Errorf("gradient of %s differs by %g", p, d)
			}
			grads++
		}
		if s, ok := strings.CutPrefix(name, "step1."); ok {
			if d := off(got(s), want); !(d < bound) {
				t.Errorf("%s differs by %g", s, d)
			}
		}
	}
	if grads != len(b.Params()) {
		t.Errorf("%d gradients in the reference for %d parameters", grads, len(b.Params()))
	}
}
