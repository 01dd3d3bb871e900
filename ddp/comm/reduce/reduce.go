package reduce

import (
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Many combines src element-wise, in the order given, and writes the result to dst and to each of mirror. All spans hold
// n elements of type t. A destination may be one of the sources exactly; otherwise spans must not overlap. Mirrors and sources must lie outside
// the Go heap, or be pinned (everything in the arrays behind the slices: cgo checks it); dst may be anywhere. dst may be nil if mirror is not empty.
func Many(op comm.Op, t npu.DType, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	if n == 0 {
		return
	}
	if len(src) == 0 || t.Size() == 0 || op > comm.Min {
		panic(fmt.Sprintf("reduce: %v of %d sources of %v", op, len(src), t))
	}
	many(op, t, n, dst, mirror, src)
}

// Into does dst = dst op src.
func Into(op comm.Op, t npu.DType, dst, src []byte) {
	n := min(len(dst), len(src))
	if s := t.Size(); s > 0 {
		n /= s
	}
	if n == 0 {
		return
	}
	if t.Size() == 0 || op > comm.Min {
		panic(fmt.Sprintf("reduce: %v of %v", op, t))
	}
	into(op, t, n, unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]))
}
