package nodes

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// A small call allocates little: its handle, and what the groups' handles take.
func TestAllocations(t *testing.T) {
	g := overTCP(t, []int{0, 1})
	defer closeAll(g)
	ctx := context.Background()
	const calls = 200
	mems := make([]comm.Mem, len(g))
	for r, c := range g {
		b, err := c.Alloc(4096)
		if err != nil {
			t.Fatal(err)
		}
		mems[r] = comm.Mem{Ptr: npu.Ptr{Buf: b}, Elems: 1024, DType: npu.F32}
	}
	reduce := func(c comm.Communicator, m comm.Mem) {
		if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
			t.Error(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range calls + 1 { // AllocsPerRun calls once more
			reduce(g[1], mems[1])
		}
	}()
	n := testing.AllocsPerRun(calls, func() { reduce(g[0], mems[0]) })
	<-done
	t.Logf("%.1f allocations a call, of two ranks together", n)
	if n > 16 {
		t.Errorf("%.1f allocations a call", n)
	}
}
