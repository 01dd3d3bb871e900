//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/ref"
)

// memory hands out C-like memory (no Go heap, which C must not keep), 64-byte aligned, each piece followed by a guard that must stay untouched.
type memory struct {
	mem  []byte
	used int
	ends []int
}

func newMemory(t testing.TB, bytes int) *memory {
	m, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{mem: m}
}

func (m *memory) free() { syscall.Munmap(m.mem) }

const guard = 0xA5

func (m *memory) take(n int64) []byte {
	end := m.used + int(n)
	b := m.mem[m.used:end:end]
	m.used = (end + 64 + 63) / 64 * 64
	for i := end; i < m.used; i++ {
		m.mem[i] = guard
	}
	m.ends = append(m.ends, end)
	return b
}

func (m *memory) check(t testing.TB, what string) {
	t.Helper()
	for _, e := range m.ends {
		for i := e; i < e+64; i++ {
			if m.mem[i] != guard {
				t.Fatalf("%s: wrote behind an argument", what)
			}
		}
	}
}

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// twin is one comparison of a kernel with package ref.
type twin struct {
	op      npu.Op         // with layouts
	in      [][]byte       // plain; nil: random normal numbers
	alias   map[int]int    // output → input whose place it takes
	initial map[int][]byte // content of an output beforehand
	tol     float64        // allowed error, relative to the largest value of the output; 0: by dtype
	skip    map[int]bool   // outputs not compared
}

// relayout copies a plain tensor into the layout of d, or back.
func relayout(d npu.Desc, src []byte, back bool) []byte {
	if d.Layout == npu.Plain {
		return bytes.Clone(src)
	}
	n, c, hw, size := d.Shape[0], d.Shape[1], d.Shape[2]*d.Shape[3], d.DType.Size()
	dst := make([]byte, len(src))
	for i := range n {
		for j := range c {
			for k := range hw {
				plain := ((i*c+j)*hw + k) * size
				at := ((i*hw+k)*c + j) * size
				if b := kern.Block(d.Layout); b > 0 {
					at = (((i*(c/b)+j/b)*hw+k)*b + j%b) * size
				}
				if back {
					copy(dst[plain:plain+size], src[at:])
				} else {
					copy(dst[at:at+size], src[plain:])
				}
			}
		}
	}
	return dst
}

func plain(op npu.Op) npu.Op {
	op = op.Clone()
	for i := range op.In {
		op.In[i].Layout = npu.Plain
	}
	for i := range op.Out {
		op.Out[i].Layout = npu.Plain
	}
	return op
}

// random numbers around 0.3: the mean is not 0, so that a forgotten one shows.
func random(r *rand.Rand, d npu.Desc) []byte {
	b := make([]byte, d.PlainBytes())
	for i := range int(d.Shape.Elems()) {
		put(b, i, d.DType, r.NormFloat64()+0.3)
	}
	return b
}

func put(b []byte, i int, t npu.DType, v float64) {
	switch t {
	case npu.F32:
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
	case npu.BF16:
		binary.LittleEndian.PutUint16(b[2*i:], ref.BF16(float32(v)))
	case npu.I32:
		binary.LittleEndian.PutUint32(b[4*i:], uint32(int32(v)))
	case npu.I64, npu.F64:
		u := uint64(int64(v))
		if t == npu.F64 {
			u = math.Float64bits(v)
		}
		binary.LittleEndian.PutUint64(b[8*i:], u)
	default:
		b[i] = byte(int(v))
	}
}

func get(b []byte, i int, t npu.DType) float64 {
	switch t {
	case npu.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	case npu.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
	case npu.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	case npu.I64:
		return float64(int64(binary.LittleEndian.Uint64(b[8*i:])))
	case npu.I32:
		return float64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return float64(b[i])
}

// run executes the twin on every instruction set with one, two and three threads: bit-equal among thread counts, close to ref.
func (w twin) run(t *testing.T, r *rand.Rand) {
	t.Helper()
	in := make([][]byte, len(w.op.In))
	for i, d := range w.op.In {
		if i < len(w.in) && w.in[i] != nil {
			in[i] = w.in[i]
		} else {
			in[i] = random(r, d)
		}
	}
	pl := plain(w.op)
	want := make([][]byte, len(pl.Out))
	for i, d := range pl.Out {
		want[i] = make([]byte, d.PlainBytes())
		copy(want[i], w.initial[i])
	}
	if err := ref.Run(pl, append(append([][]byte{}, in...), want...)); err != nil {
		t.Fatal(err)
	}
	for isa, name := range kern.ISAs() {
		call, ok := kern.PrepareFor(w.op, isa)
		if !ok {
			t.Fatalf("no kernel for %s", w.op)
		}
		call.ForThreads(3)
		var first [][]byte
		for threads := 1; threads <= 3; threads++ {
			got := w.exec(t, call, in, threads)
			if first == nil {
				first = got
				for i, d := range w.op.Out {
					if !w.skip[i] {
						w.compare(t, fmt.Sprintf("%s: %s: output %d", name, w.op, i), d, got[i], want[i])
					}
				}
				continue
			}
			for i := range got {
				if !bytes.Equal(got[i], first[i]) {
					t.Fatalf("%s: %s: output %d differs between 1 and %d threads", name, w.op, i, threads)
				}
			}
		}
	}
}

// exec runs the call and gives the outputs, plain.
func (w twin) exec(t *testing.T, call *kern.Call, in [][]byte, threads int) [][]byte {
	t.Helper()
	total := call.Workspace() + 1<<16
	for _, d := range append(append([]npu.Desc{}, w.op.In...), w.op.Out...) {
		total += d.PlainBytes() + 256
	}
	m := newMemory(t, int(total))
	defer m.free()
	var args []unsafe.Pointer
	mems := make([][]byte, len(w.op.In)+len(w.op.Out))
	for i, d := range w.op.In {
		mems[i] = m.take(d.PlainBytes())
		copy(mems[i], relayout(d, in[i], false))
	}
	for i, d := range w.op.Out {
		k := len(w.op.In) + i
		if a, ok := w.alias[i]; ok {
			mems[k] = mems[a]
			continue
		}
		mems[k] = m.take(d.PlainBytes())
		for j := range mems[k] {
			mems[k][j] = 0xFF // NaN, unless overwritten
		}
		copy(mems[k], w.initial[i])
	}
	for _, b := range mems {
		args = append(args, ptr(b))
	}
	ws := m.take(call.Workspace())
	for j := range ws {
		ws[j] = 0xFF
	}
	cmd, err := call.Bind(args, ptr(ws), threads)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(threads); err != nil {
		t.Fatalf("%s: %v", w.op, err)
	}
	m.check(t, w.op.String())
	var out [][]byte
	for i, d := range w.op.Out {
		out = append(out, relayout(d, mems[len(w.op.In)+i], true))
	}
	return out
}

// compare allows an error of tol times the largest value: float32 sums of some thousand terms carry about 1e-6, bfloat16 rounds to 2^-9, and
// at most twice along the way: one unit in the last place, 2^-7.
func (w twin) compare(t *testing.T, what string, d npu.Desc, got, want []byte) {
	t.Helper()
	tol := w.tol
	if tol == 0 {
		if tol = 1e-5; d.DType == npu.BF16 {
			tol = 8e-3
		}
	}
	n, big := int(d.Shape.Elems()), 0.0
	for j := range n {
		if v := math.Abs(get(want, j, d.DType)); !math.IsInf(v, 0) {
			big = max(big, v)
		}
	}
	for j := range n {
		g, v := get(got, j, d.DType), get(want, j, d.DType)
		if g == v || g != g && v != v {
			continue
		}
		if e := math.Abs(g - v); !(e <= tol*big || e < 0x1p-126) { // denormals may be lost
			t.Fatalf("%s: element %d is %v, ref has %v: off by %.3g of the largest, %.3g", what, j, g, v, e/big, big)
		}
	}
}

// layouts that [N C H W] may have.
func layouts(c int) []npu.Layout {
	l := []npu.Layout{npu.Plain, kern.NHWC}
	for _, blocked := range []npu.Layout{kern.NChw16c, kern.NChw8c} {
		if c%kern.Block(blocked) == 0 {
			l = append(l, blocked)
		}
	}
	return l
}

func in(dt npu.DType, l npu.Layout, s ...int) npu.Desc {
	return npu.Desc{Shape: s, DType: dt, Layout: l}
}
