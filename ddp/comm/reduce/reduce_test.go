package reduce

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

var types = []npu.DType{npu.F32, npu.BF16, npu.F16, npu.F64, npu.I32, npu.I64, npu.U8, npu.I8}

// TestSameBits compares every implementation with the plain one over types, reductions, counts of ranks, sizes and aliasing.
func TestSameBits(t *testing.T) { eachISA(t, sameBits) }

func sameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dt := range types {
		for _, op := range []comm.Op{comm.Sum, comm.Max, comm.Min} {
			for _, w := range []int{1, 2, 4, 5} {
				for _, n := range []int{1, 7, 1023, 5000, 9001} {
					for _, inPlace := range []bool{true, false} {
						check(t, rng, op, dt, w, n, inPlace)
					}
				}
			}
		}
	}
}

func check(t *testing.T, rng *rand.Rand, op comm.Op, dt npu.DType, w, n int, inPlace bool) {
	t.Helper()
	a, b := make([][]byte, w+1), make([][]byte, w+1)
	for k := range a {
		a[k] = random(rng, dt, n)
		b[k] = bytes.Clone(a[k])
	}
	call := func(f func(comm.Op, npu.DType, int, unsafe.Pointer, []unsafe.Pointer, []unsafe.Pointer), m [][]byte) {
		p := make([]unsafe.Pointer, len(m))
		for k := range m {
			p[k] = unsafe.Pointer(&m[k][0])
		}
		if inPlace {
			f(op, dt, n, p[0], p[1:w], p[:w])
		} else {
			f(op, dt, n, p[w], nil, p[:w])
		}
	}
	call(pinned, a)
	call(plain, b)
	for k := range a {
		if !bytes.Equal(a[k], b[k]) {
			i := 0
			for a[k][i] == b[k][i] {
				i++
			}
			s := dt.Size()
			i = i / s * s
			t.Fatalf("%v %v ranks %d n %d in place %v: buffer %d differs at element %d: % x, plain % x", op, dt, w, n, inPlace, k, i/s, a[k][i:i+s], b[k][i:i+s])
		}
	}
}

// random gives bits of every kind, NaN and infinities included, but one NaN pattern only: payloads are not part of the promise.
func random(rng *rand.Rand, t npu.DType, n int) []byte {
	b := make([]byte, n*t.Size())
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	p := unsafe.Pointer(&b[0])
	switch t {
	case npu.F32:
		for i, v := range at[float32](p, n) {
			if v != v {
				at[uint32](p, n)[i] = 0x7fc00000
			} else if rng.IntN(2) == 0 {
				at[float32](p, n)[i] = rng.Float32()
			}
		}
	case npu.F64:
		for i, v := range at[float64](p, n) {
			if v != v {
				at[uint64](p, n)[i] = 0x7ff8000000000000
			}
		}
	case npu.BF16:
		for i, v := range at[uint16](p, n) {
			if v&0x7fff > 0x7f80 {
				at[uint16](p, n)[i] = 0x7fc0
			}
		}
	case npu.F16:
		for i, v := range at[uint16](p, n) {
			if v&0x7fff > 0x7c00 {
				at[uint16](p, n)[i] = 0x7e00
			}
		}
	}
	return b
}

// TestHalf checks the conversions over all 65536 values and around the edges of rounding.
func TestHalf(t *testing.T) {
	for i := range 1 << 16 {
		v := uint16(i)
		if f := fromF16(v); f == f && toF16(f) != v {
			t.Fatalf("f16 %04x → %v → %04x", v, f, toF16(f))
		}
		if f := fromBF16(v); f == f && toBF16(f) != v {
			t.Fatalf("bf16 %04x → %v → %04x", v, f, toBF16(f))
		}
	}
	for _, c := range []struct {
		f    float32
		want uint16
	}{
		{65519, 0x7bff}, {65520, 0x7c00}, {float32(math.Inf(-1)), 0xfc00},
		{1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02}, // ties go to even
		{1.0 / (1 << 25), 0x0000}, {1.5 / (1 << 24), 0x0002}, {6.1e-5, 0x0400 - 1},
	} {
		if got := toF16(c.f); got != c.want {
			t.Errorf("f16 of %g is %04x, want %04x", c.f, got, c.want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, w := range []int{2, 4} {
		for _, n := range []int{1 << 10, 1 << 16, 1 << 22} {
			b.Run(fmt.Sprintf("ranks=%d/elems=%d", w, n), func(b *testing.B) {
				m := make([][]float32, w)
				p := make([]unsafe.Pointer, w)
				for k := range m {
					m[k] = make([]float32, n)
					p[k] = unsafe.Pointer(&m[k][0])
				}
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					pinned(comm.Sum, npu.F32, n, p[0], p[1:], p)
				}
			})
		}
	}
}

// Into is the two-operand form.
func ExampleInto() {
	sum := []byte{1, 2, 250}
	Into(comm.Sum, npu.U8, sum, []byte{10, 20, 30})
	fmt.Println(sum)
	// Output: [11 22 24]
}
