package self

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
)

func TestSuite(t *testing.T) {
	commtest.Run(t, commtest.Transport{
		New:   func(*testing.T, int) []comm.Communicator { return []comm.Communicator{New()} },
		Ranks: []int{1},
	})
}

func TestCopies(t *testing.T) {
	ctx := context.Background()
	c := New()
	in, out := []int32{1, 2, 3}, make([]int32, 3)
	for name, call := range map[string]func() (comm.Handle, error){
		"reducescatter": func() (comm.Handle, error) { return c.ReduceScatter(ctx, comm.HostOf(out), comm.HostOf(in), comm.Sum) },
		"allgather":     func() (comm.Handle, error) { return c.AllGather(ctx, comm.HostOf(out), comm.HostOf(in)) },
		"alltoall":      func() (comm.Handle, error) { return c.AllToAll(ctx, comm.HostOf(out), comm.HostOf(in)) },
	} {
		clear(out)
		if err := comm.Wait(ctx)(call()); err != nil || out[2] != 3 {
			t.Errorf("%s: %v %v", name, out, err)
		}
	}
	if _, err := c.Send(ctx, comm.HostOf(in), 0); err == nil {
		t.Error("send to itself")
	}
	if _, err := c.AllGather(ctx, comm.HostOf(out[:2]), comm.HostOf(in)); err == nil {
		t.Error("sizes differ")
	}
	why := errors.New("why")
	c.Abort(why)
	if _, err := c.Barrier(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
}

func Example() {
	c := New()
	defer c.Close()
	ctx := context.Background()
	v := []float32{1, 2}
	err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Sum))
	fmt.Println(v, err)
	// Output: [1 2] <nil>
}
