package commtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Worker is what one process of a group does in a test with several processes: every collective, over sizes and kinds of memory, each result
// compared with the twin. Inputs are made from rank numbers, so that every process knows what the others bring.
func Worker(ctx context.Context, c comm.Communicator) error { return Transport{}.Worker(ctx, c) }

// Worker is the function Worker for a transport with options; New and Kill are not needed. The caller closes the communicator.
func (tr Transport) Worker(ctx context.Context, c comm.Communicator) error {
	tr = tr.ready()
	err := tr.everything(ctx, c)
	return errors.Join(err, tr.release([]comm.Communicator{c}))
}

func (tr Transport) everything(ctx context.Context, c comm.Communicator) error {
	w := c.Size()
	try := func(kind comm.Kind, dt npu.DType, n int64) error {
		for _, own := range []ownership{allShared, allHeap, mixed} {
			call := comm.Call{Kind: kind, DType: dt, Root: int(n) % w, Elems: n * int64(w)}
			if !tr.supports(call) {
				continue
			}
			if err := tr.check(ctx, c, call, own); err != nil {
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
			if err := tr.gossip(ctx, c, own); err != nil {
				return err
			}
		}
	}
	return comm.Wait(ctx)(c.Barrier(ctx))
}

func (tr Transport) check(ctx context.Context, c comm.Communicator, call comm.Call, own ownership) error {
	inputs := make([][]byte, c.Size())
	for r := range inputs {
		inputs[r] = pattern(call.DType, inElems(call, c.Size()), r)
	}
	got, err := tr.perform(ctx, c, call, inputs[c.Rank()], own)
	if err != nil {
		return fmt.Errorf("%v, %v memory: %w", call, own, err)
	}
	if why := tr.wrong(call, tr.twin(call, inputs)[c.Rank()], got); why != "" {
		return fmt.Errorf("%v, %v memory: %s", call, own, why)
	}
	return nil
}
