package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
)

// amp is a training in f16 by PyTorch; testdata/README.md describes it.
type amp struct {
	Scaler struct {
		Init, Growth, Backoff float64
		Interval              int
	}
	AdamW  struct{ LR, Decay float64 }
	Batch  int
	X      []float32
	Labels []int32
	Start  map[string][]float32
	Steps  []struct {
		Loss, Scale float64
		Skipped     bool
		Norm        *float64
	}
	Weights map[string][]float32
}

func (a *amp) Name() string                 { return "amp.json" }
func (a *amp) Len() int                     { return len(a.Labels) }
func (a *amp) Classes() []string            { return nil }
func (a *amp) Fingerprint() (string, error) { return "amp", nil }
func (a *amp) Fields() []data.Field {
	return []data.Field{{Name: "image", Shape: []int{6}, DType: npu.F32}, {Name: "label", DType: npu.I32, Target: true}}
}

func (a *amp) Load(_ context.Context, _ *data.Rand, i int, dst [][]byte) error {
	copy(data.F32(dst[0]), a.X[6*i:])
	data.I32(dst[1])[0] = a.Labels[i]
	return nil
}

// start gives the first weights.
type start struct{ of map[string][]float32 }

func (s start) Names() []string { return []string{"fc1.weight", "fc1.bias", "fc2.weight"} }
func (s start) Shape(name string) ([]int, bool) {
	shape, ok := map[string][]int{"fc1.weight": {64, 6}, "fc1.bias": {64}, "fc2.weight": {4, 64}}[name]
	return shape, ok
}
func (s start) Read(name string, dst []float32) error { copy(dst, s.of[name]); return nil }
func (s start) Close() error                          { return nil }

// TestScalingAsPyTorch trains the network of make_amp.py from the same weights on the same samples: the same steps overflow at the same scales, and are
// skipped. Losses, norms and final weights agree to the precision of f16, whose 11 bits are 5e-4 of a value. The bounds are four such roundings; for weights
// of the largest one's size, as Adam normalises each gradient.
func TestScalingAsPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/amp.json")
	if err != nil {
		t.Fatal(err)
	}
	var want amp
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	const bound = 4 * 5e-4
	for _, c := range []struct {
		ranks  int
		memory string
	}{{1, "host"}, {2, "host"}, {1, "strict"}, {2, "strict"}} {
		ranks := c.ranks
		dir := t.TempDir()
		got, _, errs := recorded(t, ranks, []Option{WithModel(mlp), WithData(&want, want.Batch/ranks), WithSteps(len(want.Steps)), WithLR(want.AdamW.LR),
			WithOptimizer(optim.Default(optim.AdamW, want.AdamW.Decay)), WithDevice("ref", 1), WithCheckpoints(dir, 0), func(cfg *Config) {
				s := optim.DefaultScaler()
				s.Init, s.Growth, s.Backoff, s.Interval = want.Scaler.Init, want.Scaler.Growth, want.Scaler.Backoff, want.Scaler.Interval
				cfg.Compute, cfg.Scaler, cfg.NoShuffle = npu.F16, &s, true
				cfg.Options = map[string]string{"memory": c.memory} // strict: the host cannot reach the device's memory
				cfg.InitFrom, cfg.Weights = "amp.json", func(string) (Weights, error) { return start{want.Start}, nil }
			}}, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, w := range want.Steps {
			g := got.steps[i]
			if g.Scale.X != w.Scale || g.Skipped != w.Skipped || math.Abs(g.Loss.X-w.Loss) > bound*w.Loss {
				t.Errorf("%d ranks, step %d: scale %g, skipped %t, loss %.6g; PyTorch has %g, %t, %.6g",
					ranks, i+1, g.Scale.X, g.Skipped, g.Loss.X, w.Scale, w.Skipped, w.Loss)
			}
			if w.Norm != nil && !(math.Abs(g.Norm.X-*w.Norm) <= bound**w.Norm) {
				t.Errorf("%d ranks, step %d: norm %.6g, PyTorch has %.6g", ranks, i+1, g.Norm.X, *w.Norm)
			}
		}
		set, err := safetensors.OpenSet(filepath.Join(dir, "step-00000028", checkpoint.ModelFile))
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want.Weights {
			g, err := set.Float32s(name)
			if err != nil {
				t.Fatal(err)
			}
			off, largest := 0.0, 0.0
			for i := range w {
				off, largest = max(off, math.Abs(float64(g[i]-w[i]))), max(largest, math.Abs(float64(w[i])))
			}
			if !(off <= bound*largest) {
				t.Errorf("%d ranks: %s is off by %.3g of the largest", ranks, name, off/largest)
			}
		}
		set.Close()
	}
}
