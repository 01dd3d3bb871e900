package graphtest

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Device is a compiled program on a device, with memory for everything and access to it by name.
type Device struct {
	Prog   *graph.Program
	Stream npu.Stream
	Mem    graph.Memory

	t     testing.TB
	mover *graph.Mover
}

// OnDevice compiles a model and fills parameters and states with what values gives for their names, row-major. A test whose device cannot
// be opened is skipped. change may change the program before it is bound. All is released when the test ends.
func OnDevice(
	t testing.TB, family string, threads int, b *graph.Builder, o graph.Options, values func(name string) []float32, change ...func(*graph.Program),
) *Device {
	t.Helper()
	dev, err := npu.Open(family, npu.Options{Threads: threads})
	if err != nil {
		t.Skipf("no device %s: %v", family, err)
	}
	t.Cleanup(func() { // runs last
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return On(t, dev, b, o, values, change...)
}

// On is OnDevice for a device that is open. It stays open.
func On(t testing.TB, dev npu.Device, b *graph.Builder, o graph.Options, values func(name string) []float32, change ...func(*graph.Program)) *Device {
	t.Helper()
	d := &Device{t: t}
	check := d.check
	var err error
	d.Prog, err = graph.Compile(b, dev, o)
	check(err)
	for _, f := range change {
		f(d.Prog)
	}
	d.Stream, err = dev.NewStream("compute")
	check(err)
	d.mover = graph.NewMover(dev, d.Stream)
	alloc := func(bytes int64) npu.Ptr {
		buf, err := dev.Alloc(bytes)
		check(err)
		t.Cleanup(func() { buf.Free() })
		return npu.Ptr{Buf: buf}
	}
	for _, x := range d.Prog.Weights() {
		d.Mem.Weights = append(d.Mem.Weights, alloc(x.Bytes))
		if x.Grad {
			d.Mem.Grads = append(d.Mem.Grads, alloc(x.Bytes))
		}
	}
	for _, s := range d.Prog.States() {
		d.Mem.States = append(d.Mem.States, alloc(s.Bytes))
	}
	check(d.Prog.Bind(d.Mem))
	t.Cleanup(func() {
		check(d.mover.Close())
		check(d.Prog.Close())
		check(d.Stream.Close())
	})
	for i, x := range d.Prog.Weights() {
		d.put(d.Mem.Weights[i], x.Desc, values(x.Name))
	}
	for i, s := range d.Prog.States() {
		d.put(d.Mem.States[i], s.Desc, values(s.Name))
	}
	t.Logf("%s", dev.Info().Detail)
	return d
}

func (d *Device) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *Device) put(at npu.Ptr, desc npu.Desc, v []float32) {
	d.t.Helper()
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	d.putRaw(at, desc, raw)
}

func (d *Device) putRaw(at npu.Ptr, desc npu.Desc, raw []byte) {
	d.t.Helper()
	if int64(len(raw)) != desc.PlainBytes() {
		d.t.Fatalf("%d bytes for %s", len(raw), desc)
	}
	d.check(d.mover.In(context.Background(), at, desc, raw))
}

// Set fills an input of floats.
func (d *Device) Set(name string, v ...float32) {
	d.t.Helper()
	at, desc, ok := d.Prog.Input(name)
	if !ok {
		d.t.Fatalf("no input %q", name)
	}
	d.put(at, desc, v)
}

// SetInts fills an input of i32.
func (d *Device) SetInts(name string, v ...int32) {
	d.t.Helper()
	at, desc, ok := d.Prog.Input(name)
	if !ok {
		d.t.Fatalf("no input %q", name)
	}
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(x))
	}
	d.putRaw(at, desc, raw)
}

// Run runs the program once and waits for it.
func (d *Device) Run() {
	d.t.Helper()
	d.check(d.Prog.RunSync(context.Background(), d.Stream))
}

// get copies floats from the device, row-major.
func (d *Device) get(at npu.Ptr, desc npu.Desc) []float32 {
	d.t.Helper()
	raw := make([]byte, desc.PlainBytes())
	d.check(d.mover.Out(context.Background(), raw, at, desc))
	v := make([]float32, desc.Shape.Elems())
	for i := range v {
		v[i] = float32(decode(raw, i, desc.DType))
	}
	return v
}

// Output reads an output.
func (d *Device) Output(name string) []float32 {
	d.t.Helper()
	at, desc, ok := d.Prog.Output(name)
	if !ok {
		d.t.Fatalf("no output %q", name)
	}
	return d.get(at, desc)
}

// Grads are all gradients by the name of their parameter.
func (d *Device) Grads() map[string][]float32 {
	d.t.Helper()
	out, next := map[string][]float32{}, 0
	for _, x := range d.Prog.Weights() {
		if x.Grad {
			out[x.Name] = d.get(d.Mem.Grads[next], x.Desc)
			next++
		}
	}
	return out
}

// States are all states by name.
func (d *Device) States() map[string][]float32 {
	d.t.Helper()
	out := map[string][]float32{}
	for i, s := range d.Prog.States() {
		out[s.Name] = d.get(d.Mem.States[i], s.Desc)
	}
	return out
}

// put64 fills an input of any type.
func (d *Device) put64(name string, v []float64) {
	d.t.Helper()
	at, desc, ok := d.Prog.Input(name)
	if !ok {
		d.t.Fatalf("no input %q", name)
	}
	raw := make([]byte, desc.PlainBytes())
	for i, x := range v {
		d.check(encode(raw, i, x, desc.DType))
	}
	d.putRaw(at, desc, raw)
}
