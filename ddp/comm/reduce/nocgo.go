//go:build !cgo || !amd64

package reduce

import (
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Impl names the implementation in use.
func Impl() string { return "go" }

func many(op comm.Op, t npu.DType, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	plain(op, t, n, dst, mirror, src)
}

func into(op comm.Op, t npu.DType, n int, dst, src unsafe.Pointer) {
	plain(op, t, n, dst, nil, []unsafe.Pointer{dst, src})
}
