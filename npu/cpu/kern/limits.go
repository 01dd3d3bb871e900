//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "limits.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// Loop is what a loop over memory does; see [Rate].
type Loop int

const (
	Read Loop = C.LIMIT_READ // reads a
	Copy Loop = C.LIMIT_COPY // copies b to a
	Add  Loop = C.LIMIT_ADD  // adds b to a
)

// line is the unit in which ranges of memory are walked, in bytes.
const line = 64

// Rate returns how many bytes a second a loop reads and writes at best on threads of the calling thread's team, over the bytes of a and, unless it only
// reads, as many of b. It takes the fastest pass of several loops (with more streams, with prefetching, with stores that do not read the line first), each
// of which runs for the time d. Memory is 64-byte aligned, and what it holds is lost.
func Rate(l Loop, a, b []byte, threads int, d time.Duration) float64 {
	lines := len(a) / line
	pb := unsafe.Pointer(unsafe.SliceData(a))
	if l != Read {
		lines, pb = min(lines, len(b)/line), unsafe.Pointer(unsafe.SliceData(b))
	}
	if lines == 0 {
		return 0
	}
	r := C.limit_best(C.int(l), C.int(best()), unsafe.Pointer(unsafe.SliceData(a)), pb, C.int64_t(lines), C.int(threads), C.double(d.Seconds()))
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return float64(r)
}

// Arithmetic returns how many operations a second (a multiply-add is two) threads of the calling thread's team do at best in registers, in float32, or
// with products of bfloat16 that are summed in float32. isa is the instruction set. Where the processor has none for the type, or [EnvISA] excludes it,
// the rate is 0.
func Arithmetic(t npu.DType, threads int, d time.Duration) (rate float64, isa string) {
	measure := func(what, set int) float64 {
		return float64(C.limit_best(C.int(what), C.int(set), nil, nil, 0, C.int(threads), C.double(d.Seconds())))
	}
	isa = isaNames[best()]
	switch {
	case t == npu.F32 && wide():
		return measure(C.LIMIT_FMA, C.LIMIT_WIDE), "avx512"
	case t == npu.F32:
		return measure(C.LIMIT_FMA, best()), isa
	case t == npu.BF16 && useTiles():
		return measure(C.LIMIT_TILES, best()), "amx"
	case t == npu.BF16:
		if rate = measure(C.LIMIT_DOT, best()); rate > 0 {
			isa = "avx512_bf16"
		}
		return rate, isa
	}
	return 0, isa
}

// Compare measures how many operations a second this thread does in registers in float32 and with products of bfloat16, in turn, and returns the best of
// some turns of each; 0 for a type without instructions, or with those of AMX, which are no such loop. A turn of both takes about 0.1 ms.
func Compare(turns int) (f32, bf16 float64) {
	var a, b C.double
	C.limit_compare(C.int(best()), C.int(turns), &a, &b)
	return float64(a), float64(b)
}

// wide reports whether 512-bit multiply-adds may be used: also on processors that run this package's kernels for AVX2.
func wide() bool {
	l, limited := limited()
	return C.limit_wide() != 0 && (!limited || l.name == "avx512" || l.name == "avx512_bf16")
}

// Region returns the shortest time of a parallel region of the calling thread's team that does nothing.
func Region(threads int) time.Duration {
	return time.Duration(float64(C.limit_region(C.int(threads))) * 1e9)
}
