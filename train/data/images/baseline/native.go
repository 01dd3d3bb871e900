//go:build cgo && (linux || darwin) && (amd64 || arm64)

package baseline

// #cgo CFLAGS: -O3 -g0 -std=gnu11 -Wall
// #cgo noescape bl_unstuff
// #cgo nocallback bl_unstuff
// #cgo noescape bl_mcus
// #cgo nocallback bl_mcus
// #cgo noescape bl_color
// #cgo nocallback bl_color
// #include "baseline.h"
import "C"

import (
	"os"
	"sync"
	"unsafe"
)

// native are the kernels in C.
type native struct{}

// isa is the build of the C kernels that is used. The variable that limits the instruction sets of all kernels limits these too.
var isa = sync.OnceValue(func() int32 {
	if os.Getenv("GOTRAIN_MAX_ISA") == "base" {
		return C.BL_BASE
	}
	return int32(C.bl_isa())
})

func (d *Decoder) kernels(j *job) kernels {
	if d.plain {
		return inGo{}
	}
	j.isa = isa()
	return native{}
}

func bytePtr(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

func (native) unstuff(dst, src []byte) (written, used, marker int) {
	if len(dst) < len(src) {
		panic("baseline: too little memory")
	}
	var u C.size_t
	var m C.int
	n := C.bl_unstuff(bytePtr(dst), bytePtr(src), C.size_t(len(src)), &u, &m)
	return int(n), int(u), int(m)
}

func (native) mcus(j *job, t *[8]huffman, src []byte, n int, first, last int64, whole bool, planes []byte) bool {
	w := C.int(0)
	if whole {
		w = 1
	}
	return C.bl_mcus((*C.bl_job)(unsafe.Pointer(j)), (*C.bl_huffman)(unsafe.Pointer(&t[0])), (*C.bl_huffman)(unsafe.Pointer(&t[4])), bytePtr(src),
		C.size_t(n), C.int64_t(first), C.int64_t(last), w, bytePtr(planes)) == 0
}

func (native) color(j *job, planes, rgb []byte) {
	C.bl_color((*C.bl_job)(unsafe.Pointer(j)), bytePtr(planes), bytePtr(rgb))
}

// The structs of both languages have the same size, or this does not compile.
var (
	_ [unsafe.Sizeof(job{}) - C.sizeof_bl_job]struct{}
	_ [C.sizeof_bl_job - unsafe.Sizeof(job{})]struct{}
	_ [unsafe.Sizeof(huffman{}) - C.sizeof_bl_huffman]struct{}
	_ [C.sizeof_bl_huffman - unsafe.Sizeof(huffman{})]struct{}
)
