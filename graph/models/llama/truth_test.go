package llama_test

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/graph"
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

// machine runs one program on one device.
type machine struct {
	t      testing.TB
	prog   *graph.Program
	stream npu.Stream
	mover  *graph.Mover
	mem    graph.Memory
}

// newMachine compiles a model and gives it the weights of a file.
func newMachine(t testing.TB, family string, b *graph.Builder, o graph.Options, w *safetensors.File) *machine {
	t.Helper()
	dev, err := npu.Open(family, npu.Options{Threads: 2})
	if err != nil {
		t.Skipf("device %s: %v", family, err)
	}
	t.Cleanup(func() { dev.Close() })
	m := &machine{t: t}
	m.prog, err = graph.Compile(b, dev, o)
	check(t, err)
	m.stream, err = dev.NewStream("compute")
	check(t, err)
	m.mover = graph.NewMover(dev, m.stream)
	alloc := func(bytes int64) npu.Ptr {
		buf, err := dev.Alloc(bytes)
		check(t, err)
		t.Cleanup(func() { buf.Free() })
		return npu.Ptr{Buf: buf}
	}
	for _, x := range m.prog.Weights() {
		m.mem.Weights = append(m.mem.Weights, alloc(x.Bytes))
		if x.Grad {
			m.mem.Grads = append(m.mem.Grads, alloc(x.Bytes))
		}
	}
	for _, s := range m.prog.States() {
		m.mem.States = append(m.mem.States, alloc(s.Bytes))
	}
	check(t, m.prog.Bind(m.mem))
	t.Cleanup(func() {
		m.mover.Close()
		m.prog.Close()
		m.stream.Close()
	})
	for i, x := range m.prog.Weights() {
		raw, err := w.Bytes(x.Name)
		check(t, err)
		check(t, m.mover.In(context.Background(), m.mem.Weights[i], x.Desc, raw))
	}
	return m
}

// set fills an input with raw bytes.
func (m *machine) set(name string, raw []byte) {
	m.t.Helper()
	at, d, ok := m.prog.Input(name)
	if !ok {
		m.t.Fatalf("no input %q", name)
	}
	check(m.t, m.mover.In(context.Background(), at, d, raw))
}

func (m *machine) run() {
	m.t.Helper()
	check(m.t, m.prog.RunSync(context.Background(), m.stream))
}

func (m *machine) get(at npu.Ptr, d npu.Desc) []float32 {
	m.t.Helper()
	raw := make([]byte, d.PlainBytes())
	check(m.t, m.mover.Out(context.Background(), raw, at, d))
	v := make([]float32, d.Shape.Elems())
	check(m.t, safetensors.DecodeFloat32s(v, raw, map[npu.DType]safetensors.DType{npu.F32: safetensors.F32, npu.BF16: safetensors.BF16}[d.DType]))
	return v
}

func (m *machine) output(name string) []float32 {
	m.t.Helper()
	at, d, ok := m.prog.Output(name)
	if !ok {
		m.t.Fatalf("no output %q", name)
	}
	return m.get(at, d)
}

func one() []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)) }

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
			m := newMachine(t, family, b, graph.Options{}, w)
			ids, err := want.Bytes("input_ids")
			check(t, err)
			m.set("tokens", ids)
			m.run()
			d := apart(m.output("logits"), floats(t, want, "logits"), 1)
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
			m := newMachine(t, c.family, b, c.o, w)
			for in, name := range map[string]string{"tokens": "input_ids", "targets": "target_ids"} {
				raw, err := want.Bytes(name)
				check(t, err)
				m.set(in, raw)
			}
			m.set(graph.LossScaleInput, one())
			m.run()
			if n := m.output("count")[0]; n != 192 {
				t.Errorf("%g tokens counted", n)
			}
			if got := float64(m.output("loss")[0]) / 192; math.Abs(got-mean) > c.loss*mean {
				t.Errorf("loss %.9g, want %.9g", got, mean)
			}
			worst, where := 0.0, ""
			for i, x := range m.prog.Weights() {
				if d := apart(m.get(m.mem.Grads[i], x.Desc), floats(t, want, "grad."+x.Name), 1.0/192); d > worst {
					worst, where = d, x.Name
				}
			}
			t.Logf("gradients differ by at most %.1e, in %s", worst, where)
			if worst > c.grad {
				t.Errorf("the gradient of %s differs by %g of its largest element", where, worst)
			}
		})
	}
}
