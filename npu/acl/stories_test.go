//go:build cgo && linux

package acl

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// stories is a trained Llama with loss and gradients that PyTorch computed in float64.
type stories struct{ weights, reference *safetensors.File }

func openStories(t *testing.T) stories {
	t.Helper()
	file := func(path string) *safetensors.File {
		f, err := safetensors.Open(filepath.FromSlash(path))
		must(t, err)
		t.Cleanup(func() { must(t, f.Close()) })
		return f
	}
	return stories{file("../../recipes/data/stories260k/model.safetensors"), file("../../graph/models/llama/testdata/stories260k/reference.safetensors")}
}

func (s stories) floats(t *testing.T, f *safetensors.File, name string) []float32 {
	t.Helper()
	v, err := f.Float32s(name)
	must(t, err)
	return v
}

func (s stories) ids(t *testing.T, name string) []int32 {
	t.Helper()
	raw, err := s.reference.Bytes(name)
	must(t, err)
	return int32s(raw)
}

func int32s(raw []byte) []int32 {
	v := make([]int32, len(raw)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}

// Logits of a real model, to 2e-6 of the largest, as on other devices.
func TestLogitsOfARealModel(t *testing.T) {
	s := openStories(t)
	c, err := llama.Named("stories260k")
	must(t, err)
	for _, soc := range []string{"A2", "A3"} {
		t.Run(soc, func(t *testing.T) {
			acltest.Use(t).Set("SOC", soc)
			b := graph.New(graph.ForEval())
			b.Output("logits", c.Logits(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, llama.Weights{}))
			m := graphtest.OnDevice(t, "npu", 1, b, graph.Options{}, func(name string) []float32 { return s.floats(t, s.weights, name) })
			m.SetInts("tokens", s.ids(t, "input_ids")...)
			m.Run()
			if d := apart(m.Output("logits"), s.floats(t, s.reference, "logits"), 1); !(d <= 2e-6) {
				t.Errorf("logits differ by %g of the largest", d)
			}
		})
	}
	if acltest.Version() == "8.1" {
		acltest.Again(t, "9.0", "TestLogitsOfARealModel")
	}
}

// TestGradientsOfARealModel has the bounds of the test of the same name in graph/models/llama: 1e-6 of the loss and 2e-5 of a gradient's largest element in
// f32; in 16 bits the loss to 1 % and gradients to 10 %.
func TestGradientsOfARealModel(t *testing.T) {
	s := openStories(t)
	c, err := llama.Named("stories260k")
	must(t, err)
	var mean float64
	losses := s.floats(t, s.reference, "token_loss")
	for _, l := range losses {
		mean += float64(l) / float64(len(losses))
	}
	for _, x := range []struct {
		name       string
		soc        string
		o          graph.Options
		loss, grad float64
	}{
		{"f32", "A2", graph.Options{}, 1e-6, 2e-5},
		{"f32 unfused", "A3", graph.Options{NoFuse: true}, 1e-6, 2e-5},
		{"recomputed", "A2", graph.Options{Recompute: true}, 1e-6, 2e-5},
		{"bf16", "A3", graph.Options{Compute: npu.BF16}, 1e-2, 0.1},
		{"f16", "A2", graph.Options{Compute: npu.F16}, 1e-2, 0.1},
	} {
		t.Run(x.name, func(t *testing.T) {
			acltest.Use(t).Set("SOC", x.soc)
			b := graph.New()
			loss, count := c.Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, b.Input("targets", npu.I32, 2, 96), llama.Weights{})
			b.Loss(loss)
			b.Output("count", count)
			m := graphtest.OnDevice(t, "npu", 1, b, x.o, func(name string) []float32 { return s.floats(t, s.weights, name) })
			m.SetInts("tokens", s.ids(t, "input_ids")...)
			m.SetInts("targets", s.ids(t, "target_ids")...)
			m.Set(graph.LossScaleInput, 1)
			m.Run()
			if n := m.Output("count")[0]; n != 192 {
				t.Errorf("%g tokens counted", n)
			}
			if got := float64(m.Output("loss")[0]) / 192; math.Abs(got-mean) > x.loss*mean {
				t.Errorf("loss %.9g, must be %.9g", got, mean)
			}
			worst, where := 0.0, ""
			for name, g := range m.Grads() {
				if d := apart(g, s.floats(t, s.reference, "grad."+name), 1.0/192); d > worst {
					worst, where = d, name
				}
			}
			t.Logf("gradients differ by at most %.1e, in %s", worst, where)
			if !(worst <= x.grad) || where == "" {
				t.Errorf("the gradient of %s differs by %g of its largest element", where, worst)
			}
		})
	}
	if acltest.Version() == "8.1" {
		acltest.Again(t, "9.0", "TestGradientsOfARealModel")
	}
}

// apart is the largest difference, relative to the largest value of want.
func apart(got, want []float32, scale float64) (worst float64) {
	top := 0.0
	for i := range want {
		top = max(top, math.Abs(float64(want[i])))
		worst = max(worst, math.Abs(float64(got[i])*scale-float64(want[i])))
	}
	return worst / top
}
