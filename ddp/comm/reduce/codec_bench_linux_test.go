package reduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// spans hands out memory outside the Go heap, in huge pages if the kernel grants them, as transports allocate; no two spans begin at the same cache line of
// a page.
type spans struct {
	b *testing.B
	n int
}

func take[T any](s *spans, n int) []T {
	s.b.Helper()
	var v T
	const page = 2 << 20
	mem, err := syscall.Mmap(-1, 0, n*int(unsafe.Sizeof(v))+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() { syscall.Munmap(mem) })
	syscall.Madvise(mem, 14)                                          // MADV_HUGEPAGE
	off := (page - int(uintptr(unsafe.Pointer(&mem[0]))%page)) % page // so that all benefit alike
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 0 // the memory comes into being
	}
	s.n++
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[off+s.n*(4096+320)])), n)
}

// BenchmarkCodec has the rows that bench/compare -what encode shows beside another program's: bytes are those of float32.
func BenchmarkCodec(b *testing.B) {
	for _, n := range []int{32 << 10, 16 << 20} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := &spans{b: b}
		x, d := take[float32](s, n), take[float32](s, n)
		for i := range x {
			x[i] = float32((rng.Float64() - 0.5) * math.Exp(-float64(i%977)/200))
		}
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/KiB=%d", name, n*4>>10), func(b *testing.B) {
				b.SetBytes(int64(4 * n))
				f()
				for b.Loop() {
					f()
				}
			})
		}
		benchQuantise(s, x, run)
		benchSums(s, x, d, run)
		h, g := take[uint16](s, n), take[uint16](s, n)
		for _, half := range []struct {
			name string
			t    npu.DType
		}{{"f16", npu.F16}, {"bf16", npu.BF16}} {
			run(half.name+" encode", func() { Narrow(half.t, h, x, 1) })
			Narrow(half.t, g, x, 1)
			run(half.name+" decode", func() { Widen(half.t, d, h, 1) })
			src := []unsafe.Pointer{unsafe.Pointer(&h[0]), unsafe.Pointer(&g[0])}
			sum := take[uint16](s, n)
			run(half.name+" sum of 2, rounded", func() { Many(comm.Sum, half.t, n, unsafe.Pointer(&sum[0]), nil, src) })
		}
	}
}

func benchQuantise(s *spans, x []float32, run func(name string, f func())) {
	n := len(x)
	q := take[int8](s, n)
	f := &Feedback{Old: take[int16](s, n), New: take[int16](s, n), Unit: 1}
	for _, block := range []int{64, 256, 1024} {
		scale := make([]float32, Blocks(n, block))
		f.OldScale, f.NewScale = make([]float32, len(scale)), make([]float32, len(scale))
		run(fmt.Sprintf("int8 encode B=%d", block), func() { Quantise(block, q, scale, x, nil) })
		run(fmt.Sprintf("int8 encode + error feedback B=%d", block), func() {
			Quantise(block, q, scale, x, f)
			f.Old, f.New, f.OldScale, f.NewScale = f.New, f.Old, f.NewScale, f.OldScale
		})
	}
}

// benchSums has sums of a part of one's own, which is not rounded, and of others' parts.
func benchSums(s *spans, x, d []float32, run func(name string, f func())) {
	const block = 256
	n := len(x)
	at := 4 * Blocks(n, block)
	stride := (n + at + 63) &^ 63
	mem := take[byte](s, 4*stride)
	for r := range 4 {
		part := mem[r*stride:]
		Quantise(block, unsafe.Slice((*int8)(unsafe.Pointer(&part[at])), n), unsafe.Slice((*float32)(unsafe.Pointer(&part[0])), n/block), x, nil)
	}
	q, scale := unsafe.Slice((*int8)(unsafe.Pointer(&mem[at])), n), unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), n/block)
	run("int8 decode", func() { Dequantise(block, d, q, scale) })
	clear(d)
	run("int8 decode and sum of 2", func() { SumQuantised(block, d, mem, at, 0, stride, 2, 0) })
	clear(d)
	run("int8 decode and sum of 4", func() { SumQuantised(block, d, mem, at, 0, stride, 4, 1) })
}
