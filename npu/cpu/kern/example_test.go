//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

func Example() {
	x := npu.D(npu.F32, 2, 2)
	op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add", "relu": true}, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
	call, ok := kern.Prepare(op)
	fmt.Println("taken:", ok, "workspace:", call.Workspace())

	// Memory that is not Go's: C keeps the addresses.
	mem, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer syscall.Munmap(mem)
	a, b := (*[4]float32)(unsafe.Pointer(&mem[0])), (*[4]float32)(unsafe.Pointer(&mem[64]))
	*a, *b = [4]float32{1, -2, 3, -4}, [4]float32{10, 1, -5, 8}

	cmd, err := call.Bind([]unsafe.Pointer{unsafe.Pointer(a), unsafe.Pointer(b), unsafe.Pointer(a)}, nil, 1)
	if err == nil {
		err = cmd.Run(1)
	}
	fmt.Println(*a, err)
	// Output:
	// taken: true workspace: 0
	// [11 0 0 4] <nil>
}
