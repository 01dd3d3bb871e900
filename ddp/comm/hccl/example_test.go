package hccl_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/hccl"
	"github.com/gotrain/gotrain/npu"
)

// Which calls on device memory HCCL can do.
func ExampleSupports() {
	for _, c := range []comm.Call{
		{Kind: comm.AllReduce, DType: npu.BF16, Elems: 1 << 20},
		{Kind: comm.AllReduce, DType: npu.F64, Elems: 8},
		{Kind: comm.Broadcast, DType: npu.F64, Elems: 8},
	} {
		fmt.Println(c, hccl.Supports(c))
	}
	// Output:
	// allreduce bf16[1048576] sum true
	// allreduce f64[8] sum false
	// broadcast f64[8] root 0 true
}
