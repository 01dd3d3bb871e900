//go:build pretrained

package resnet_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
)

// machine is a model on a device, with a name for everything.
type machine struct {
	t      *testing.T
	prog   *graph.Program
	stream npu.Stream
	mover  *graph.Mover
	mem    graph.Memory
}

// newMachine compiles b for one thread of the cpu and loads the weights.
func newMachine(t *testing.T, b *graph.Builder, compute npu.DType, w map[string]tfjs.Tensor) *machine {
	t.Helper()
	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil {
		t.Skipf("no cpu device, and the plain-Go one would take hours: %v", err)
	}
	m := &machine{t: t}
	check := m.check
	t.Cleanup(func() { check(dev.Close()) }) // runs last
	m.prog, err = graph.Compile(b, dev, graph.Options{Compute: compute})
	check(err)
	m.stream, err = dev.NewStream("compute")
	check(err)
	m.mover = graph.NewMover(dev, m.stream)
	alloc := func(bytes int64) npu.Ptr {
		buf, err := dev.Alloc(bytes)
		check(err)
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
	check(m.prog.Bind(m.mem))
	t.Cleanup(func() {
		check(m.mover.Close())
		check(m.prog.Close())
		check(m.stream.Close())
	})
	for i, x := range m.prog.Weights() {
		m.in(m.mem.Weights[i], x.Desc, w[x.Name].Data)
	}
	for i, s := range m.prog.States() {
		m.in(m.mem.States[i], s.Desc, w[s.Name].Data)
	}
	t.Logf("%s", dev.Info().Detail)
	return m
}

func (m *machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// in copies float32s to the device.
func (m *machine) in(at npu.Ptr, d npu.Desc, v []float32) {
	m.t.Helper()
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	m.check(m.mover.In(context.Background(), at, d, raw))
}

// set fills an input.
func (m *machine) set(name string, v []float32) {
	m.t.Helper()
	at, d, ok := m.prog.Input(name)
	if !ok {
		m.t.Fatalf("no input %q", name)
	}
	m.in(at, d, v)
}

func (m *machine) setLabels(v []int32) {
	m.t.Helper()
	at, d, ok := m.prog.Input("label")
	if !ok {
		m.t.Fatal("no labels")
	}
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(x))
	}
	m.check(m.mover.In(context.Background(), at, d, raw))
}

func (m *machine) run() {
	m.t.Helper()
	m.check(m.prog.RunSync(context.Background(), m.stream))
}

// get copies floats from the device, row-major.
func (m *machine) get(at npu.Ptr, d npu.Desc) []float32 {
	m.t.Helper()
	raw := make([]byte, d.PlainBytes())
	m.check(m.mover.Out(context.Background(), raw, at, d))
	v := make([]float32, d.Shape.Elems())
	for i := range v {
		switch d.DType {
		case npu.F32:
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		case npu.BF16:
			v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		default:
			m.t.Fatalf("%v holds no floats", d)
		}
	}
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

// grads are all gradients by the name of their parameter.
func (m *machine) grads() map[string][]float32 {
	m.t.Helper()
	out := map[string][]float32{}
	for i, x := range m.prog.Weights() {
		out[x.Name] = m.get(m.mem.Grads[i], x.Desc)
	}
	return out
}

func (m *machine) states() map[string][]float32 {
	m.t.Helper()
	out := map[string][]float32{}
	for i, s := range m.prog.States() {
		out[s.Name] = m.get(m.mem.States[i], s.Desc)
	}
	return out
}
