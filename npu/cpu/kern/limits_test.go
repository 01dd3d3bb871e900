//go:build cgo && linux && (amd64 || arm64)

package kern

import (
	"testing"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// The loops walk all memory and nothing else: after adding, every element has changed equally, and the bytes around are what they were.
func TestRateWalksMemory(t *testing.T) {
	const lines = 37 // not a multiple of any number of streams or threads
	mem := make([]float32, 3*lines*16+32)
	off := int(-uintptr(unsafe.Pointer(&mem[0]))%64) / 4
	mem = mem[off:][:2*lines*16+16]
	bytes := func(f []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), 4*len(f)) }
	a, b, rest := mem[:lines*16], mem[lines*16:2*lines*16], mem[2*lines*16:]
	for _, threads := range []int{1, 2} {
		for i := range a {
			a[i], b[i] = 0, 1
		}
		rest[0] = 7
		if r := Rate(Add, bytes(a), bytes(b), threads, time.Millisecond); r <= 0 {
			t.Errorf("adding: %g bytes/s", r)
		}
		for i := range a {
			if a[i] != a[0] || a[i] < 2 || b[i] != 1 {
				t.Fatalf("%d threads: element %d is %g and %g, the first is %g", threads, i, a[i], b[i], a[0])
			}
		}
		if r := Rate(Copy, bytes(a), bytes(b), threads, time.Millisecond); r <= 0 {
			t.Errorf("copying: %g bytes/s", r)
		}
		for i := range a {
			if a[i] != 1 {
				t.Fatalf("%d threads: element %d is %g after a copy of 1", threads, i, a[i])
			}
		}
		if r := Rate(Read, bytes(a), nil, threads, time.Millisecond); r <= 0 || rest[0] != 7 {
			t.Errorf("reading: %g bytes/s, %g", r, rest[0])
		}
	}
	if r := Rate(Copy, bytes(a), nil, 1, time.Millisecond); r != 0 {
		t.Errorf("copying nothing: %g bytes/s", r)
	}
}

// A limited processor has no more arithmetic than it says.
func TestArithmetic(t *testing.T) {
	for isa, bf16 := range map[string]bool{"": true, "base": false, "avx2": false, "avx512": false} {
		t.Setenv(EnvISA, isa)
		f, name := Arithmetic(npu.F32, 1, time.Millisecond)
		if f <= 0 || isa == "base" && name != "base" || isa == "avx2" && name == "avx512" {
			t.Errorf("%q: f32 %g FLOP/s by %s", isa, f, name)
		}
		if h, name := Arithmetic(npu.BF16, 1, time.Millisecond); h > 0 && !bf16 {
			t.Errorf("%q: bf16 %g FLOP/s by %s", isa, h, name)
		}
	}
	if r, _ := Arithmetic(npu.I32, 1, time.Millisecond); r != 0 {
		t.Errorf("i32: %g", r)
	}
	if d := Region(2); d <= 0 || d > time.Second {
		t.Errorf("a parallel region takes %v", d)
	}
}
