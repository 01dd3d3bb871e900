package commtest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Worker is what one process of a group does in a test with several processes: every collective, over sizes and kinds of memory, each result
// compared with the twin. Inputs are made from rank numbers, so that every process knows what the others bring.
func Worker(ctx context.Context, c comm.Communicator) error {
	w := c.Size()
	try := func(kind comm.Kind, dt npu.DType, n int64) error {
		for _, own := range []ownership{allShared, allHeap, mixed} {
			call := comm.Call{Kind: kind, DType: dt, Root: int(n) % w, Elems: n * int64(w)}
			if err := check(ctx, c, call, own); err != nil {
				return err
			}
		}
		return nil
	}
	for _, kind := range collectives {
		for _, n := range []int64{1, 1000, 30001} {
			if err := try(kind, npu.F32, n); err != nil {
				return err
			}
		}
		if err := try(kind, npu.BF16, 300); err != nil {
			return err
		}
	}
	if err := try(comm.AllReduce, npu.F32, 300001); err != nil {
		return err
	}
	if w > 1 {
		for _, own := range []ownership{allShared, allHeap, mixed} {
			if err := gossip(ctx, c, own); err != nil {
				return err
			}
		}
	}
	return comm.Wait(ctx)(c.Barrier(ctx))
}

func check(ctx context.Context, c comm.Communicator, call comm.Call, own ownership) error {
	inputs := make([][]byte, c.Size())
	for r := range inputs {
		inputs[r] = pattern(call.DType, inElems(call, c.Size()), r)
	}
	got, err := perform(ctx, c, call, inputs[c.Rank()], own)
	if err != nil {
		return fmt.Errorf("%v, %v memory: %w", call, own, err)
	}
	if want := twin(call, inputs)[c.Rank()]; want != nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%v, %v memory: differs from the twin at byte %d", call, own, differ(got, want))
	}
	return nil
}
