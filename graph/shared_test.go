package graph_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// sharing are models in which a parameter's gradient is the gradient of something else too: of another parameter, or of an activation that the backward pass
// still has to read, under its own shape or another.
var sharing = map[string]func(b *graph.Builder){
	"two parameters": func(b *graph.Builder) {
		s := npu.Shape{2, 3}
		b.Loss(b.Sum(b.Square(b.Add(b.Param("a", s, graph.Gaussian(1)), b.Param("b", s, graph.Gaussian(1))))))
	},
	"activation": func(b *graph.Builder) {
		h := b.Linear(b.Input("x", npu.F32, 2, 3), b.Param("w", npu.Shape{3, 3}, graph.Gaussian(1)), nil)
		b.Loss(b.Sum(b.Square(b.Add(h, b.Param("shift", npu.Shape{2, 3}, graph.Gaussian(1))))))
	},
	"activation of another shape": func(b *graph.Builder) {
		h := b.Linear(b.Input("x", npu.F32, 2, 3), b.Param("w", npu.Shape{3, 3}, graph.Gaussian(1)), nil)
		b.Loss(b.Sum(b.Square(b.Add(b.Reshape(h, 6), b.Param("shift", npu.Shape{6}, graph.Gaussian(1))))))
	},
}

// Others sum a gradient over ranks in place as soon as it is ready, so nothing may read it after that.
func TestNothingReadsAGradientThatIsReady(t *testing.T) {
	dev := openRef(t)
	for name, model := range sharing {
		t.Run(name, func(t *testing.T) {
			b := graph.New()
			model(b)
			p, err := graph.Compile(b, dev, graph.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			pl := p.Plan()
			for _, w := range pl.Weights {
				for si := w.Ready + 1; si < len(pl.Steps); si++ {
					for _, in := range pl.Steps[si].In {
						if m := pl.Memory(in); m == w.Grad || m == w.Value {
							t.Errorf("%s is ready after step %d, and step %d (%s %s) reads it", w.Name, w.Ready, si, pl.Steps[si].Op.Kind, pl.Steps[si].Name)
						}
					}
				}
			}
		})
	}
}

// The same pass twice doubles every gradient, exactly.
func TestSharedGradientsAccumulate(t *testing.T) {
	dev := openRef(t)
	for name, model := range sharing {
		t.Run(name, func(t *testing.T) {
			once, twice := passes(t, dev, model, 1), passes(t, dev, model, 2)
			if !slices.ContainsFunc(once, func(v float32) bool { return v != 0 }) {
				t.Error("all gradients are zero")
			}
			for i := range once {
				if twice[i] != 2*once[i] {
					t.Errorf("element %d is %g after one pass and %g after two", i, once[i], twice[i])
				}
			}
		})
	}
}

func openRef(t *testing.T) npu.Device {
	t.Helper()
	dev, err := npu.Open("ref", npu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// passes runs a model some times on the same memory and returns all gradients, one behind the other. The reference device has one layout,
// and its memory is the host's.
func passes(t *testing.T, dev npu.Device, model func(b *graph.Builder), n int) (out []float32) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b := graph.New()
	model(b)
	p, err := graph.Compile(b, dev, graph.Options{Accumulate: true})
	check(err)
	defer p.Close()
	s, err := dev.NewStream("compute")
	check(err)
	defer s.Close()
	fill := func(mem []byte) {
		for i := range len(mem) / 4 {
			binary.NativeEndian.PutUint32(mem[4*i:], math.Float32bits(1+float32(i%5)/4))
		}
	}
	var m graph.Memory
	for _, w := range p.Weights() {
		value, err := dev.Alloc(w.Bytes)
		check(err)
		grad, err := dev.Alloc(w.Bytes)
		check(err)
		fill(value.Host())
		m.Weights, m.Grads = append(m.Weights, npu.Ptr{Buf: value}), append(m.Grads, npu.Ptr{Buf: grad})
	}
	check(p.Bind(m))
	for _, name := range []string{"x", graph.LossScaleInput} {
		if at, d, ok := p.Input(name); ok {
			fill(at.Buf.Host()[at.Off : at.Off+d.PlainBytes()])
		}
	}
	for i := range n {
		check(p.Run(s, i > 0, nil))
	}
	check(s.Sync(context.Background()))
	for i, w := range p.Weights() {
		for g := m.Grads[i].Buf.Host()[:w.Bytes]; len(g) >= 4; g = g[4:] {
			out = append(out, math.Float32frombits(binary.NativeEndian.Uint32(g)))
		}
	}
	return out
}
