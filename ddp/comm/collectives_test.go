package comm_test

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/npu"
)

// Do is the inverse of Collectives: each call arrives as it was given, with its spans of memory.
func TestCollectivesAndDo(t *testing.T) {
	c := self.New()
	var got comm.Call
	var dst, src comm.Mem
	c.Issue = func(_ context.Context, call comm.Call, out, in comm.Mem) (comm.Handle, error) {
		got, dst, src = call, out, in
		return nil, nil
	}
	one, two := comm.HostOf(make([]float64, 12)), comm.HostOf(make([]float64, 12))
	for _, call := range []comm.Call{
		{Kind: comm.AllReduce, Op: comm.Max, DType: npu.F64, Elems: 12},
		{Kind: comm.ReduceScatter, Op: comm.Min, DType: npu.F64, Elems: 12},
		{Kind: comm.AllGather, DType: npu.F64, Elems: 12},
		{Kind: comm.Broadcast, DType: npu.F64, Root: 3, Elems: 12},
		{Kind: comm.Reduce, Op: comm.Max, DType: npu.F64, Root: 5, Elems: 12},
		{Kind: comm.AllToAll, DType: npu.F64, Elems: 12},
		{Kind: comm.Send, DType: npu.F64, Root: 2, Elems: 12},
		{Kind: comm.Recv, DType: npu.F64, Root: 7, Elems: 12},
		{Kind: comm.Barrier},
	} {
		out, in := one, two
		switch call.Kind {
		case comm.ReduceScatter:
			out = one.Slice(0, 3)
		case comm.AllGather:
			in = two.Slice(0, 3)
		case comm.AllToAll:
		case comm.Barrier:
			out, in = comm.Mem{}, comm.Mem{}
		default:
			out = in
		}
		if _, err := comm.Do(t.Context(), c, call, out, in); err != nil || got != call || dst != out || src != in {
			t.Errorf("%v: issued as %v, out %v in %v, %v", call, got, dst, src, err)
		}
	}
	if _, err := comm.Do(t.Context(), c, comm.Call{Kind: 77}, one, two); err == nil {
		t.Error("an unknown collective was issued")
	}
}

// The way through Collectives costs no memory: self adds none of its own.
func TestCollectivesAllocateNothing(t *testing.T) {
	ctx, c := t.Context(), comm.Communicator(self.New())
	m := comm.HostOf(make([]float32, 64))
	if n := testing.AllocsPerRun(100, func() {
		if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // the closure of Wait
		t.Errorf("%v allocations a call", n)
	}
}
