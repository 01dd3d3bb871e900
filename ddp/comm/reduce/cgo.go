//go:build cgo && amd64

package reduce

/*
#cgo CFLAGS: -O3 -std=c11 -Wall
#include "reduce.h"
#cgo noescape gt_reduce
#cgo nocallback gt_reduce
#cgo noescape gt_reduce2
#cgo nocallback gt_reduce2
*/
import "C"

import (
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Impl names the implementation in use.
func Impl() string { return "c:" + C.GoString(C.gt_reduce_isa()) }

// Addresses of mirrors and sources are passed as numbers: they lie outside the Go heap (or are pinned), so cgo has nothing to check, and the check
// would take longer than a small reduction.
func many(op comm.Op, t npu.DType, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	var m *C.uintptr_t
	if len(mirror) > 0 {
		m = (*C.uintptr_t)(unsafe.Pointer(&mirror[0]))
	}
	C.gt_reduce(C.int(op), C.int(t), C.size_t(n), dst, m, C.int(len(mirror)), (*C.uintptr_t)(unsafe.Pointer(&src[0])), C.int(len(src)))
}

func into(op comm.Op, t npu.DType, n int, dst, src unsafe.Pointer) {
	C.gt_reduce2(C.int(op), C.int(t), C.size_t(n), dst, src)
}
