package commtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// pairs tests Send and Recv: all pairs in both directions, in order, alongside collectives.
func (tr Transport) pairs(t *testing.T) {
	for _, w := range tr.Ranks {
		if w == 1 {
			continue
		}
		g := tr.group(t, w)
		for _, own := range []ownership{allShared, allHeap, mixed} {
			all(t, g, func(ctx context.Context, c comm.Communicator) error { return tr.gossip(ctx, c, own) })
		}
		errs := each(t, g[:2], func(ctx context.Context, c comm.Communicator) error {
			if c.Rank() == 0 {
				return comm.Wait(ctx)(c.Send(ctx, tr.some(t, c, npu.F32, 8), 1))
			}
			return comm.Wait(ctx)(c.Recv(ctx, tr.some(t, c, npu.F32, 9), 0))
		})
		for r, err := range errs {
			if e, err := as[*comm.MismatchError](r, err); err != nil {
				t.Error(err)
			} else if e.Peer != 1-r {
				t.Errorf("rank %d: mismatch with rank %d", r, e.Peer)
			}
		}
	}
}

// gossip sends three messages to every rank and receives theirs, concurrently, with an all-reduce in between.
func (tr Transport) gossip(ctx context.Context, c comm.Communicator, own ownership) error {
	sizes := []int64{0, 10, 70000}
	var handles []comm.Handle
	var check []func() error
	shared := own == allShared || own == mixed && c.Rank()%2 == 0
	for p := range c.Size() {
		if p == c.Rank() {
			continue
		}
		for i, n := range sizes {
			out, free, err := tr.memory(c, npu.I32, n, shared)
			if err != nil {
				return err
			}
			defer free()
			in, free, err := tr.memory(c, npu.I32, n, shared)
			if err != nil {
				return err
			}
			defer free()
			v := make([]int32, n)
			for j := range v {
				v[j] = int32(j + 100*c.Rank() + i)
			}
			if err := tr.put(c, out, comm.HostOf(v).Host()); err != nil {
				return err
			}
			hs, err := c.Send(ctx, out, p)
			if err != nil {
				return err
			}
			hr, err := c.Recv(ctx, in, p)
			if err != nil {
				return err
			}
			handles = append(handles, hs, hr)
			check = append(check, func() error {
				got, err := values[int32](tr, c, in)
				if err != nil {
					return err
				}
				for j, v := range got {
					if want := int32(j + 100*p + i); v != want {
						return fmt.Errorf("message %d from rank %d: [%d] = %d, want %d", i, p, j, v, want)
					}
				}
				return nil
			})
		}
	}
	if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
		return err
	}
	for _, h := range handles {
		if err := h.Wait(ctx); err != nil {
			return err
		}
	}
	for _, f := range check {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
