package graph_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// TestAccumulateInDeviceLayouts: gradients add up in whatever layouts the device keeps its weights. Three input channels are padded by some of them.
func TestAccumulateInDeviceLayouts(t *testing.T) {
	for _, family := range []string{"ref", "cpu"} {
		t.Run(family, func(t *testing.T) {
			dev, err := npu.Open(family, npu.Options{Threads: 1})
			if err != nil {
				t.Skip(err)
			}
			defer dev.Close()
			b := graph.New()
			x, y := b.Input("image", npu.F32, 2, 3, 12, 12), b.Input("label", npu.I32, 2)
			w := b.Param("w", npu.Shape{64, 3, 7, 7}, graph.KaimingNormal(graph.FanOut))
			h := b.GlobalAvgPool(b.Relu(b.Conv2D(x, w, nil, graph.Conv{Stride: graph.Square(2), Pad: graph.Pad(3)})))
			loss, _ := b.CrossEntropy(h, y)
			b.Loss(loss)
			if err := b.Grad(); err != nil {
				t.Fatal(err)
			}
			once, twice := gradient(t, dev, b, 1), gradient(t, dev, b, 2)
			var size float64
			for i := range once {
				size += math.Abs(float64(once[i]))
				if twice[i] != 2*once[i] { // exact: the same pass twice, and a doubling
					t.Fatalf("element %d is %g after one pass and %g after two", i, once[i], twice[i])
				}
			}
			if size == 0 {
				t.Error("the gradient is zero")
			}
		})
	}
}

// gradient is the one of the only weight after some passes.
func gradient(t *testing.T, dev npu.Device, b *graph.Builder, passes int) []float32 {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := graph.Compile(b, dev, graph.Options{Accumulate: true})
	check(err)
	defer p.Close()
	s, err := dev.NewStream("compute")
	check(err)
	defer s.Close()
	w := p.Weights()[0]
	value, err := dev.Alloc(w.Bytes)
	check(err)
	defer value.Free()
	grad, err := dev.Alloc(w.Bytes)
	check(err)
	defer grad.Free()
	check(p.Bind(graph.Memory{Weights: []npu.Ptr{{Buf: value}}, Grads: []npu.Ptr{{Buf: grad}}}))
	m := graph.NewMover(dev, s)
	defer m.Close()
	fill := func(at npu.Ptr, d npu.Desc, f func(i int) float32) {
		t.Helper()
		raw := make([]byte, 0, d.PlainBytes())
		for i := range int(d.Shape.Elems()) {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f(i)))
		}
		check(m.In(context.Background(), at, d, raw))
	}
	fill(npu.Ptr{Buf: value}, w.Desc, func(i int) float32 { return float32(i%17-8) / 64 })
	for _, name := range []string{"image", graph.LossScaleInput} {
		at, d, _ := p.Input(name)
		fill(at, d, func(i int) float32 { return 1 + float32(i%13)/8 })
	}
	for i := range passes {
		check(p.Run(s, i > 0, nil))
	}
	check(s.Sync(context.Background()))
	raw := make([]byte, w.Desc.PlainBytes())
	check(m.Out(context.Background(), raw, npu.Ptr{Buf: grad}, w.Desc))
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}
