package llama_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

const (
	weightsFile = "../../../recipes/data/stories260k/model.safetensors"
	reference   = "testdata/stories260k/reference.safetensors"
)

func open(t testing.TB, path string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(filepath.FromSlash(path))
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func floats(t testing.TB, f *safetensors.File, name string) []float32 {
	t.Helper()
	v, err := f.Float32s(name)
	check(t, err)
	return v
}

// onDevice compiles a model with two threads and the weights of a file.
func onDevice(t testing.TB, family string, b *graph.Builder, o graph.Options, w *safetensors.File) *graphtest.Device {
	t.Helper()
	return graphtest.OnDevice(t, family, 2, b, o, func(name string) []float32 { return floats(t, w, name) })
}

// ints reads a tensor of token ids.
func ints(t testing.TB, f *safetensors.File, name string) []int32 {
	t.Helper()
	raw, err := f.Bytes(name)
	check(t, err)
	v := make([]int32, len(raw)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
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

func stories(t testing.TB) llama.Config {
	c, err := llama.Named("stories260k")
	check(t, err)
	return c
}

// Logits of a real model, to 2e-6 of the largest: the float64 reference rounds to float32 once, here each op does.
func TestLogitsOfARealModel(t *testing.T) {
	w, want := open(t, weightsFile), open(t, reference)
	for _, family := range []string{"ref", "cpu"} {
		t.Run(family, func(t *testing.T) {
			b := graph.New(graph.ForEval())
			b.Output("logits", stories(t).Logits(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, llama.Weights{}))
			m := onDevice(t, family, b, graph.Options{}, w)
			m.SetInts("tokens", ints(t, want, "input_ids")...)
			m.Run()
			d := apart(m.Output("logits"), floats(t, want, "logits"), 1)
			t.Logf("logits differ by %.1e of the largest", d)
			if d > 2e-6 {
				t.Errorf("logits differ by %g of the largest", d)
			}
		})
	}
}

// Loss and every gradient, with every way to plan the same program. Bounds: 1e-6 of the loss; 2e-5 of a gradient's largest element in float32; in
// bf16, whose numbers have 8 bits, the loss to 1 % and gradients to 10 %.
func TestGradientsOfARealModel(t *testing.T) {
	w, want := open(t, weightsFile), open(t, reference)
	var mean float64
	losses := floats(t, want, "token_loss")
	for _, l := range losses {
		mean += float64(l) / float64(len(losses))
	}
	for _, c := range []struct {
		name, family string
		o            graph.Options
		loss, grad   float64
	}{
		{"ref", "ref", graph.Options{}, 1e-6, 2e-5},
		{"ref unfused", "ref", graph.Options{NoFuse: true}, 1e-6, 2e-5},
		{"cpu", "cpu", graph.Options{}, 1e-6, 2e-5},
		{"cpu recomputed", "cpu", graph.Options{Recompute: true}, 1e-6, 2e-5},
		{"cpu accumulating", "cpu", graph.Options{Accumulate: true}, 1e-6, 2e-5},
		{"cpu bf16", "cpu", graph.Options{Compute: npu.BF16}, 1e-2, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.New()
			loss, count := stories(t).Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, b.Input("targets", npu.I32, 2, 96), llama.Weights{})
			b.Loss(loss)
			b.Output("count", count)
			m := onDevice(t, c.family, b, c.o, w)
			m.SetInts("tokens", ints(t, want, "input_ids")...)
			m.SetInts("targets", ints(t, want, "target_ids")...)
			m.Set(graph.LossScaleInput, 1)
			m.Run()
			if n := m.Output("count")[0]; n != 192 {
				t.Errorf("%g tokens counted", n)
			}
			if got := float64(m.Output("loss")[0]) / 192; math.Abs(got-mean) > c.loss*mean {
				t.Errorf("loss %.9g, want %.9g", got, mean)
			}
			worst, where := 0.0, ""
			for name, g := range m.Grads() {
				if d := apart(g, floats(t, want, "grad."+name), 1.0/192); d > worst {
					worst, where = d, name
				}
			}
			t.Logf("gradients differ by at most %.1e, in %s", worst, where)
			if worst > c.grad {
				t.Errorf("the gradient of %s differs by %g of its largest element", where, worst)
			}
		})
	}
}
