package commtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// ordered tests reductions that are ordered by events: a chain of copies and reductions, enqueued without a wait of the host in between, has the values
// of the same chain step by step.
func (tr Transport) ordered(t *testing.T) {
	for _, w := range tr.Ranks {
		g := tr.group(t, w)
		if _, ok := g[0].(comm.Ordered); !ok {
			continue
		}
		if tr.Device == nil {
			t.Fatal("a transport that is ordered by events of a device needs Transport.Device")
		}
		all(t, g, func(ctx context.Context, c comm.Communicator) error { return tr.chain(ctx, c) })
		if w > 1 {
			tr.failedBefore(t, tr.group(t, w))
		}
	}
}

// chain enqueues, several times: fill m, reduce it behind that, copy it out behind the reduction.
func (tr Transport) chain(ctx context.Context, c comm.Communicator) error {
	const rounds = 6
	s, err := tr.stream(c)
	if err != nil {
		return err
	}
	var outs [rounds]npu.Buffer
	var handles [rounds]comm.Handle
	sizes := []int64{3, 1000, 70001}
	for i := range rounds {
		n := sizes[i%len(sizes)]
		m, free, err := tr.memory(c, npu.F32, n, i%2 == 0)
		if err != nil {
			return err
		}
		defer free()
		in, err1 := npu.AllocHost(tr.Device(c), 4*n)
		out, err2 := npu.AllocHost(tr.Device(c), 4*n)
		ev, err3 := tr.Device(c).NewEvent()
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		defer in.Free()
		defer out.Free()
		defer ev.Close()
		v := comm.View[float32](comm.Host(in.Host(), npu.F32))
		for j := range v {
			v[j] = float32(c.Rank()*10 + i)
		}
		if err := errors.Join(s.CopyIn(m.Ptr, in.Host()), s.Record(ev)); err != nil {
			return err
		}
		if handles[i], err = c.(comm.Ordered).AllReduceAfter(ctx, ev, m, comm.Sum); err != nil {
			return err
		}
		h, ok := handles[i].(comm.OnDevice)
		if !ok {
			return fmt.Errorf("the handle of AllReduceAfter is %T, which has no event", handles[i])
		}
		if err := errors.Join(s.Wait(h.Event()), s.CopyOut(out.Host(), m.Ptr)); err != nil {
			return err
		}
		outs[i] = out
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	w := c.Size()
	for i, out := range outs {
		want := float32(10*w*(w-1)/2 + w*i)
		for j, v := range comm.View[float32](comm.Host(out.Host(), npu.F32)) {
			if v != want {
				return fmt.Errorf("round %d of %d ranks: element %d is %g, want %g", i, w, j, v, want)
			}
		}
		if err := handles[i].Wait(ctx); err != nil {
			return err
		}
		<-handles[i].Done()
	}
	return nil
}

// failedBefore tests a reduction behind work that failed on one rank: it fails there with that error, and no rank waits for ever.
func (tr Transport) failedBefore(t *testing.T, g []comm.Communicator) {
	t.Helper()
	why := errors.New("the kernel before it failed")
	errs := each(t, g, func(ctx context.Context, c comm.Communicator) error {
		s, err := tr.stream(c)
		if err != nil {
			return err
		}
		ev, err := tr.Device(c).NewEvent()
		if err != nil {
			return err
		}
		defer ev.Close()
		m := tr.some(t, c, npu.F32, 5000)
		if c.Rank() == len(g)-1 {
			if err := s.Do(func() error { return why }); err != nil {
				return err
			}
		}
		_ = s.Record(ev) // it may return the error already; the event is reached in any case
		err = comm.Wait(ctx)(c.(comm.Ordered).AllReduceAfter(ctx, ev, m, comm.Sum))
		if err != nil {
			c.Abort(err)
		}
		_ = s.Sync(ctx)
		return err
	})
	for r, err := range errs {
		switch {
		case r == len(g)-1 && !errors.Is(err, why):
			t.Errorf("rank %d: error %v, want that of the work before the reduction", r, err)
		case r < len(g)-1 && err == nil:
			t.Errorf("rank %d reduced memory of a rank whose work had failed", r)
		}
	}
}
