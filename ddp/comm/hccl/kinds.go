package hccl

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// types gives HCCL's numbers of element types, and whether HCCL reduces them on A2 and A3. All of them can be moved.
var types = map[npu.DType]struct {
	number  int32
	reduced bool
}{
	npu.I8:   {0, true},
	npu.I32:  {2, true},
	npu.F16:  {3, true},
	npu.F32:  {4, true},
	npu.I64:  {5, true},
	npu.U8:   {7, false},
	npu.F64:  {10, false},
	npu.BF16: {11, true},
}

// ops gives HCCL's numbers of reductions.
var ops = [...]int32{comm.Sum: 0, comm.Max: 2, comm.Min: 3}

func reduces(k comm.Kind) bool {
	return k == comm.AllReduce || k == comm.ReduceScatter || k == comm.Reduce
}

// Supports reports whether HCCL can do a call on device memory.
func Supports(call comm.Call) bool { return refusal(call) == nil }

// refusal says why HCCL cannot do a call on device memory.
func refusal(call comm.Call) error {
	t, known := types[call.DType]
	switch {
	case call.Kind == comm.Barrier:
	case !known:
		return fmt.Errorf("HCCL has no elements of type %v", call.DType)
	case reduces(call.Kind) && !t.reduced && call.Elems > 0:
		return fmt.Errorf("HCCL does not reduce %v\nhint: HCCL reduces f32, bf16, f16, i64, i32 and i8; reduce other types in host memory", call.DType)
	}
	return nil
}

// work returns what gives a call to HCCL, for a group of more than one rank.
func work(lib library, call comm.Call, out, in uintptr, size int, group uintptr) func(stream uintptr) error {
	t, n, w := types[call.DType].number, call.Elems, int64(size)
	op := ops[call.Op]
	switch call.Kind {
	case comm.AllReduce:
		return func(s uintptr) error { return lib.AllReduce(in, out, n, t, op, group, s) }
	case comm.Reduce:
		return func(s uintptr) error { return lib.Reduce(in, out, n, t, op, call.Root, group, s) }
	case comm.ReduceScatter:
		return func(s uintptr) error { return lib.ReduceScatter(in, out, n/w, t, op, group, s) }
	case comm.AllGather:
		return func(s uintptr) error { return lib.AllGather(in, out, n/w, t, group, s) }
	case comm.Broadcast:
		return func(s uintptr) error { return lib.Broadcast(in, n, t, call.Root, group, s) }
	case comm.AllToAll:
		return func(s uintptr) error { return lib.AllToAll(in, out, n/w, t, group, s) }
	}
	return nil
}

// wire estimates the bytes that a rank sends for a call; the library does not tell.
func wire(call comm.Call, rank, size int) int64 {
	n, w := call.Elems*int64(call.DType.Size()), int64(size)
	switch call.Kind {
	case comm.AllReduce:
		return 2 * n * (w - 1) / w
	case comm.ReduceScatter, comm.AllGather, comm.AllToAll:
		return n * (w - 1) / w
	case comm.Broadcast:
		if rank == call.Root {
			return n
		}
	case comm.Reduce:
		if rank != call.Root {
			return n
		}
	case comm.Send:
		return n
	}
	return 0
}
