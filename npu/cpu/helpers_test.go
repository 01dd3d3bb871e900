//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/ref"
)

// libraries are the versions of oneDNN on this machine; $GOTRAIN_ONEDNN_3 may name another one.
func libraries(t testing.TB) []string {
	t.Helper()
	var found, versions []string
	for _, name := range append(slices.Clone(dnnl.Names), os.Getenv("GOTRAIN_ONEDNN_3")) {
		if name == "" {
			continue
		}
		l, err := dnnl.Open(name)
		if err != nil {
			t.Logf("not tested with %s: %v", name, err)
			continue
		}
		if slices.Contains(versions, l.Version()) {
			continue
		}
		versions = append(versions, l.Version())
		found = append(found, name)
	}
	if len(found) == 0 {
		t.Skip("oneDNN is not installed: apt-get install libdnnl2")
	}
	return found
}

// open opens a device that is closed when the test ends.
func open(t testing.TB, o npu.Options) *Device {
	t.Helper()
	if o.Threads == 0 {
		o.Threads = 1
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// bf16Way is the option that has bf16 instructions make products, where the processor has some, fast ones or not.
func bf16Way(t testing.TB) string {
	t.Helper()
	if open(t, npu.Options{Extra: map[string]string{"onednn": libraries(t)[0]}}).hasBF16() {
		return string(npu.NativeProducts)
	}
	return "auto"
}

// eachDevice runs a test for every library, with both layout policies and with one and two threads. Blocks are as wide as the library's are for this process.
// Products of bf16 are float32 in blocks, and bf16 instructions make them in nhwc where the processor has some.
func eachDevice(t *testing.T, f func(t *testing.T, d *Device)) {
	for _, lib := range libraries(t) {
		blocked, products := NChw16c, map[string]string{}
		d := open(t, npu.Options{Extra: map[string]string{"onednn": lib}})
		if !strings.Contains(d.isa, "avx512") {
			blocked = NChw8c
		}
		if d.hasBF16() {
			products["nhwc"], products[string(blocked)] = "native", "f32"
		}
		for threads, layout := range map[int]string{1: string(blocked), 2: "nhwc"} {
			t.Run(fmt.Sprintf("%s/%s/%d", shortName(lib), layout, threads), func(t *testing.T) {
				f(t, open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": lib, "layout": layout, "bf16": products[layout]}}))
			})
		}
	}
}

func shortName(lib string) string {
	l, err := dnnl.Open(lib)
	if err != nil {
		return lib
	}
	return l.Version()
}

// tensor makes host memory of a plain tensor with values of fn.
func tensor(d npu.Desc, fn func(i int) float64) []byte {
	b := make([]byte, d.PlainBytes())
	for i := range int(d.Shape.Elems()) {
		put(b, i, d.DType, fn(i))
	}
	return b
}

func put(b []byte, i int, t npu.DType, v float64) {
	le := binary.LittleEndian
	switch t {
	case npu.F32:
		le.PutUint32(b[4*i:], math.Float32bits(float32(v)))
	case npu.BF16:
		le.PutUint16(b[2*i:], ref.BF16(float32(v)))
	case npu.F64:
		le.PutUint64(b[8*i:], math.Float64bits(v))
	case npu.I32:
		le.PutUint32(b[4*i:], uint32(int32(v)))
	case npu.I64:
		le.PutUint64(b[8*i:], uint64(int64(v)))
	default:
		b[i] = byte(int(v))
	}
}

func get(b []byte, i int, t npu.DType) float64 {
	le := binary.LittleEndian
	switch t {
	case npu.F32:
		return float64(math.Float32frombits(le.Uint32(b[4*i:])))
	case npu.BF16:
		return float64(math.Float32frombits(uint32(le.Uint16(b[2*i:])) << 16))
	case npu.F64:
		return math.Float64frombits(le.Uint64(b[8*i:]))
	case npu.I32:
		return float64(int32(le.Uint32(b[4*i:])))
	case npu.I64:
		return float64(int64(le.Uint64(b[8*i:])))
	case npu.I8:
		return float64(int8(b[i]))
	}
	return float64(b[i])
}

func normal(r *rand.Rand) func(int) float64 { return func(int) float64 { return r.NormFloat64() } }

// rig runs single ops on a device.
type rig struct {
	t testing.TB
	d *Device
	s npu.Stream
}

func newRig(t testing.TB, d *Device) *rig {
	t.Helper()
	s, err := d.NewStream("compute")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &rig{t, d, s}
}

func (r *rig) alloc(n int64) npu.Ptr {
	r.t.Helper()
	b, err := r.d.Alloc(n)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		r.s.Sync(context.Background()) // a test that failed may have left work behind
		b.Free()
	})
	return npu.Ptr{Buf: b}
}

func (r *rig) bytes(d npu.Desc) int64 {
	r.t.Helper()
	n, err := r.d.Bytes(d)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) sync() {
	r.t.Helper()
	if err := r.s.Sync(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// launch compiles, binds and runs an op.
func (r *rig) launch(op npu.Op, args []npu.Ptr) npu.Kernel {
	r.t.Helper()
	k, err := r.d.Compile(op)
	if err != nil {
		r.t.Fatal(err)
	}
	var ws npu.Ptr
	if k.Workspace() > 0 {
		ws = r.alloc(k.Workspace())
	}
	l, err := k.Bind(args, ws)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.s.Run([]npu.Launch{l}); err != nil {
		r.t.Fatal(err)
	}
	return k
}

// upload copies a plain host tensor to the device in the layout of d.
func (r *rig) upload(d npu.Desc, host []byte) npu.Ptr {
	r.t.Helper()
	p := r.alloc(d.PlainBytes())
	if err := r.s.CopyIn(p, host); err != nil {
		r.t.Fatal(err)
	}
	return r.convert(d.With(npu.Plain), d, p)
}

func (r *rig) convert(from, to npu.Desc, p npu.Ptr) npu.Ptr {
	r.t.Helper()
	if from.Equal(to) {
		return p
	}
	q := r.alloc(r.bytes(to))
	r.launch(npu.Op{Kind: npu.Convert, In: []npu.Desc{from}, Out: []npu.Desc{to}}, []npu.Ptr{p, q})
	return q
}

// download copies a device tensor to plain host memory.
func (r *rig) download(d npu.Desc, p npu.Ptr) []byte {
	r.t.Helper()
	p = r.convert(d, d.With(npu.Plain), p)
	host := make([]byte, d.PlainBytes())
	if err := r.s.CopyOut(host, p); err != nil {
		r.t.Fatal(err)
	}
	r.sync()
	return host
}

// run chooses layouts, uploads plain inputs, runs and returns plain outputs; the kernel comes back too.
// In place outputs: alias[out] = in.
func (r *rig) run(op npu.Op, in [][]byte, alias map[int]int) (npu.Kernel, [][]byte) {
	r.t.Helper()
	op, err := r.d.Choose(op)
	if err != nil {
		r.t.Fatal(err)
	}
	var args []npu.Ptr
	for i, d := range op.In {
		args = append(args, r.upload(d, in[i]))
	}
	for i, d := range op.Out {
		if j, ok := alias[i]; ok {
			args = append(args, args[j])
			continue
		}
		args = append(args, r.alloc(r.bytes(d)))
	}
	k := r.launch(op, args)
	r.sync()
	var out [][]byte
	for i, d := range op.Out {
		if isToken(d.Layout) && op.Kind == npu.MaxPool {
			out = append(out, nil)
			continue
		}
		out = append(out, r.download(d, args[len(op.In)+i]))
	}
	return k, out
}

// want computes the outputs with package ref.
func want(t testing.TB, op npu.Op, in [][]byte) [][]byte {
	t.Helper()
	op = allPlain(op.Clone())
	args := append([][]byte{}, in...)
	for _, d := range op.Out {
		args = append(args, make([]byte, d.PlainBytes()))
	}
	if err := ref.Run(op, args); err != nil {
		t.Fatal(err)
	}
	return args[len(in):]
}

// compare fails where |got-want| > tol*(scale + |want|).
func compare(t testing.TB, what string, d npu.Desc, got, want []byte, tol, scale float64) {
	t.Helper()
	bad := 0
	for i := range int(d.Shape.Elems()) {
		g, w := get(got, i, d.DType), get(want, i, d.DType)
		if g == w || (math.IsNaN(g) && math.IsNaN(w)) {
			continue
		}
		if !(math.Abs(g-w) <= tol*(scale+math.Abs(w))) {
			if bad++; bad <= 3 {
				t.Errorf("%s: %s element %d is %g, want %g", what, d, i, g, w)
			}
		}
	}
	if bad > 3 {
		t.Errorf("%s: %d of %d elements differ", what, bad, d.Shape.Elems())
	}
}
