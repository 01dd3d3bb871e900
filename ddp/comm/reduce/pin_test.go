package reduce

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// pinned calls Many on memory of the Go heap, which must not move meanwhile. cgo looks at the whole array behind a slice.
func pinned(op comm.Op, t npu.DType, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	var pin runtime.Pinner
	defer pin.Unpin()
	for _, p := range slices.Concat([]unsafe.Pointer{dst}, mirror, src[:cap(src)]) {
		pin.Pin(p)
	}
	Many(op, t, n, dst, mirror, src)
}
