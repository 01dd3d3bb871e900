package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// inPlace tests out as a part of in, and the reverse.
func (tr Transport) inPlace(t *testing.T) {
	for _, w := range tr.Ranks {
		g := tr.group(t, w)
		for _, own := range []ownership{allShared, allHeap, mixed} {
			for _, per := range []int64{1, 100, 30000, 300000} {
				if per > 100000 && testing.Short() {
					continue
				}
				n := per * int64(w)
				inputs := make([][]byte, w)
				for r := range inputs {
					inputs[r] = pattern(npu.F32, n, r)
				}
				call := comm.Call{Kind: comm.ReduceScatter, DType: npu.F32}
				want := tr.fold(call, inputs)
				all(t, g, func(ctx context.Context, c comm.Communicator) error {
					r := int64(c.Rank())
					m, free, err := tr.memory(c, npu.F32, n, own == allShared || own == mixed && r%2 == 0)
					if err != nil {
						return err
					}
					defer free()
					if err := tr.put(c, m, inputs[r]); err != nil {
						return err
					}
					mine := m.Slice(r*per, per)
					if err := comm.Wait(ctx)(c.ReduceScatter(ctx, mine, m, comm.Sum)); err != nil {
						return err
					}
					if err := comm.Wait(ctx)(c.AllGather(ctx, m, mine)); err != nil {
						return err
					}
					got, err := tr.get(c, m)
					if err != nil {
						return err
					}
					if why := tr.wrong(call, want, got); why != "" {
						return fmt.Errorf("%v, %d per rank: reduce-scatter and all-gather in place: %s", own, per, why)
					}
					return nil
				})
			}
		}
	}
}

// empty tests calls without elements, and barriers.
func (tr Transport) empty(t *testing.T) {
	for _, w := range tr.Ranks {
		g := tr.group(t, w)
		all(t, g, func(ctx context.Context, c comm.Communicator) error {
			nothing := comm.Mem{DType: npu.F32}
			for _, kind := range append([]comm.Kind{comm.Barrier}, collectives...) {
				if err := comm.Wait(ctx)(comm.Do(ctx, c, comm.Call{Kind: kind}, nothing, nothing)); err != nil {
					return fmt.Errorf("%v: %w", kind, err)
				}
			}
			return nil
		})
	}
}

// flight tests many handles in flight, large and small, waited for in any order.
func (tr Transport) flight(t *testing.T) {
	for _, w := range tr.Ranks {
		g := tr.group(t, w)
		all(t, g, func(ctx context.Context, c comm.Communicator) error {
			const calls = 24
			var handles [calls]comm.Handle
			var mems [calls]comm.Mem
			for i := range calls {
				elems := int64([]int{1, 300, 40000, 5}[i%4])
				m, free, err := tr.memory(c, npu.F32, elems, i%3 != 0)
				if err != nil {
					return err
				}
				defer free()
				v := make([]float32, elems)
				for j := range v {
					v[j] = float32(c.Rank() + i)
				}
				if err := tr.put(c, m, comm.HostOf(v).Host()); err != nil {
					return err
				}
				mems[i] = m
				if handles[i], err = c.AllReduce(ctx, m, comm.Sum); err != nil {
					return err
				}
			}
			for i := range calls {
				i = (i*7 + c.Rank()) % calls // ranks wait in different orders
				if i%5 == 0 {
					<-handles[i].Done()
				}
				if err := handles[i].Wait(ctx); err != nil {
					return err
				}
				if err := handles[i].Wait(ctx); err != nil {
					return fmt.Errorf("second Wait: %w", err)
				}
				want := float32(w*(w-1)/2 + w*i)
				got, err := values[float32](tr, c, mems[i])
				if err != nil {
					return err
				}
				for _, v := range got {
					if v != want {
						return fmt.Errorf("call %d: %v, want %v", i, v, want)
					}
				}
			}
			return nil
		})
	}
}

// refused tests arguments that a single rank can reject; the group must stay usable.
func (tr Transport) refused(t *testing.T) {
	g := tr.group(t, 2)
	ctx := context.Background()
	c := g[0]
	f := tr.some(t, c, npu.F32, 8)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range map[string]func() (comm.Handle, error){
		"root":    func() (comm.Handle, error) { return c.Broadcast(ctx, f, 2) },
		"outside": func() (comm.Handle, error) { return c.AllReduce(ctx, f.Slice(4, 5), comm.Sum) },
		"nil":     func() (comm.Handle, error) { return c.AllReduce(ctx, comm.Mem{Elems: 3, DType: npu.F32}, comm.Sum) },
		"dtype":   func() (comm.Handle, error) { return c.AllReduce(ctx, comm.Mem{Ptr: f.Ptr, Elems: 3}, comm.Sum) },
		"op":      func() (comm.Handle, error) { return c.AllReduce(ctx, f, 9) },
		"parts":   func() (comm.Handle, error) { return c.ReduceScatter(ctx, f.Slice(0, 3), f, comm.Sum) },
		"gather":  func() (comm.Handle, error) { return c.AllGather(ctx, f.Slice(0, 7), f.Slice(0, 3)) },
		"all":     func() (comm.Handle, error) { return c.AllToAll(ctx, f.Slice(0, 3), f.Slice(3, 3)) },
		"self":    func() (comm.Handle, error) { return c.Send(ctx, f, 0) },
		"ended":   func() (comm.Handle, error) { return c.Barrier(ended) },
	} {
		if _, err := call(); err == nil || !strings.HasPrefix(err.Error(), "comm: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	all(t, g, func(ctx context.Context, c comm.Communicator) error { return comm.Wait(ctx)(c.Barrier(ctx)) })
}

// step is a call of one rank.
type step func(ctx context.Context, c comm.Communicator) (comm.Handle, error)

// fatalMismatch has the last rank make another call than the others, for a transport that breaks then.
func (tr Transport) fatalMismatch(t *testing.T, g []comm.Communicator, calls [2]step) {
	t.Helper()
	odd := len(g) - 1
	named := 0
	for r, err := range each(t, g, func(ctx context.Context, c comm.Communicator) error {
		call := calls[0]
		if c.Rank() == odd {
			call = calls[1]
		}
		return comm.Wait(ctx)(call(ctx, c))
	}) {
		var differ *comm.MismatchError
		if !errors.As(err, &differ) {
			if _, err := as[*comm.PeerError](r, err); err != nil {
				t.Error(err)
			}
			continue
		}
		named++
		if differ.Rank != r || (r == odd) == (differ.Peer == odd) || differ.Mine == differ.Its {
			t.Errorf("rank %d: %v", r, differ)
		}
	}
	if named == 0 {
		t.Error("no rank names the mismatch")
	}
	tr.broken(t, g)
}

// mismatch tests ranks that make different calls: all get an error, and may continue.
func (tr Transport) mismatch(t *testing.T) {
	f := func(c comm.Communicator, n int) comm.Mem { return tr.some(t, c, npu.F32, n) }
	reduce := func(n int, op comm.Op) step {
		return func(ctx context.Context, c comm.Communicator) (comm.Handle, error) {
			return c.AllReduce(ctx, f(c, n), op)
		}
	}
	for name, calls := range map[string][2]step{
		"elems": {reduce(100, comm.Sum), reduce(101, comm.Sum)},
		"sizes": {reduce(10, comm.Sum), reduce(1000000, comm.Sum)},
		"op":    {reduce(100, comm.Sum), reduce(100, comm.Max)},
		"empty": {reduce(0, comm.Sum), reduce(5, comm.Sum)},
		"kind":  {reduce(100, comm.Sum), func(ctx context.Context, c comm.Communicator) (comm.Handle, error) { return c.Barrier(ctx) }},
		"dtype": {reduce(100, comm.Sum), func(ctx context.Context, c comm.Communicator) (comm.Handle, error) {
			return c.AllReduce(ctx, tr.some(t, c, npu.I32, 100), comm.Sum)
		}},
		"root": {func(ctx context.Context, c comm.Communicator) (comm.Handle, error) {
			return c.Broadcast(ctx, f(c, 9), 0)
		},
			func(ctx context.Context, c comm.Communicator) (comm.Handle, error) {
				return c.Broadcast(ctx, f(c, 9), 1)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range []int{2, 3} {
				g := tr.group(t, w)
				odd := w - 1
				if tr.Fatal {
					tr.fatalMismatch(t, g, calls)
					continue
				}
				for range 2 { // the group survives
					errs := each(t, g, func(ctx context.Context, c comm.Communicator) error {
						call := calls[0]
						if c.Rank() == odd {
							call = calls[1]
						}
						return comm.Wait(ctx)(call(ctx, c))
					})
					for r, err := range errs {
						e, err := as[*comm.MismatchError](r, err)
						switch {
						case err != nil:
							t.Error(err)
						case e.Rank != r, r != odd && e.Peer != odd, r == odd && e.Peer == odd, e.Mine == e.Its:
							t.Errorf("rank %d: %v", r, e)
						}
					}
				}
				all(t, g, func(ctx context.Context, c comm.Communicator) error {
					return comm.Wait(ctx)(c.AllReduce(ctx, f(c, 10), comm.Sum))
				})
			}
		})
	}
}

// late tests a rank that arrives after the deadline of the others: it is named, and the group is broken on all ranks.
func (tr Transport) late(t *testing.T) {
	for _, elems := range []int{4, 400000} {
		g := tr.group(t, 3)
		var ready, others sync.WaitGroup
		ready.Add(2)
		others.Add(2)
		errs := each(t, g, func(ctx context.Context, c comm.Communicator) error {
			m := tr.some(t, c, npu.F32, elems)
			if c.Rank() == 1 {
				others.Wait() // until they have given up, however long that takes
			} else {
				defer others.Done()
				ready.Done()
				ready.Wait() // on a busy machine memory may take longer than the deadline, and the other one would be late too
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, short)
				defer cancel()
			}
			return comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum))
		})
		// At least one rank ran into its deadline; the others may have learned from it.
		var timeouts int
		for r, err := range errs {
			var e *comm.TimeoutError
			if errors.As(err, &e) {
				timeouts++
				if !tr.blames(e, 1) || r == 1 || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d: %v", r, err)
				}
			} else if r == 1 && err == nil {
				continue // it had all it needed; its next call fails
			} else if _, err := as[*comm.PeerError](r, err); err != nil {
				t.Error(err)
			}
		}
		if timeouts == 0 {
			t.Error("no rank reports a timeout")
		}
		tr.broken(t, g)
	}
}

// blames reports whether an error names rank alone, or nobody if the transport may not know.
func (tr Transport) blames(e *comm.TimeoutError, rank int) bool {
	return slices.Equal(e.Missing, []int{rank}) && len(e.Stalled) == 0 || tr.Deaf && len(e.Blames()) == 0
}

// broken checks that every rank refuses further calls at once.
func (tr Transport) broken(t *testing.T, g []comm.Communicator) {
	t.Helper()
	within(t, 5*time.Second, func() {
		for r, err := range each(t, g, func(ctx context.Context, c comm.Communicator) error {
			return comm.Wait(ctx)(c.Barrier(ctx))
		}) {
			if err == nil {
				t.Errorf("rank %d can continue in a broken group", r)
			}
		}
		if _, err := g[0].AllReduce(context.Background(), comm.Mem{DType: npu.F32}, comm.Sum); err == nil { // the device may be lost
			t.Error("a call on a broken communicator is accepted")
		}
	})
}

// cancel tests a context that is cancelled while the call waits.
func (tr Transport) cancel(t *testing.T) {
	g := tr.group(t, 2)
	ctx, cancel := context.WithCancelCause(context.Background())
	h, err := g[0].AllReduce(ctx, tr.some(t, g[0], npu.F32, 100000), comm.Sum)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("the user pressed a key")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	within(t, 3*time.Second, func() {
		if err := h.Wait(ctx); !errors.Is(err, why) {
			t.Errorf("error %v, want the cause", err)
		}
		<-h.Done()
	})
}

// waitContext tests a Wait that gives up before the call does.
func (tr Transport) waitContext(t *testing.T) {
	g := tr.group(t, 2)
	all(t, g, func(ctx context.Context, c comm.Communicator) error {
		if c.Rank() == 1 {
			time.Sleep(300 * time.Millisecond)
			return comm.Wait(ctx)(c.Barrier(ctx))
		}
		h, err := c.Barrier(ctx)
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		if err := h.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("short wait: %v", err)
		}
		return h.Wait(ctx)
	})
}

// dead tests a rank that vanishes, before a call and after many.
func (tr Transport) dead(t *testing.T) {
	if tr.Kill == nil {
		t.Skip("this transport has no way to kill a rank within one process")
	}
	for _, elems := range []int{4, 400000} {
		g := tr.group(t, 3)
		within(t, 5*time.Second, func() {
			errs := each(t, g, func(ctx context.Context, c comm.Communicator) error {
				m := tr.some(t, c, npu.F32, elems)
				for i := 0; ; i++ {
					if c.Rank() == 1 && i == 5 {
						tr.Kill(c)
						return nil
					}
					if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
						return err
					}
				}
			})
			for _, r := range []int{0, 2} {
				if e, err := as[*comm.PeerError](r, errs[r]); err != nil {
					t.Error(err)
				} else if e.Rank != 1 {
					t.Errorf("rank %d blames rank %d: %v", r, e.Rank, e)
				}
			}
		})
	}
	g := tr.group(t, 2)
	tr.Kill(g[1])
	within(t, 5*time.Second, func() {
		ctx := context.Background()
		if _, err := as[*comm.PeerError](0, comm.Wait(ctx)(g[0].Recv(ctx, tr.some(t, g[0], npu.F32, 4), 1))); err != nil {
			t.Error(err)
		}
	})
}

// abort tests a rank that gives up with a reason, while others wait and before they arrive.
func (tr Transport) abort(t *testing.T) {
	g := tr.group(t, 3)
	reason := errors.New("loss is not a number")
	within(t, 5*time.Second, func() {
		errs := each(t, g, func(ctx context.Context, c comm.Communicator) error {
			switch c.Rank() {
			case 1:
				time.Sleep(50 * time.Millisecond)
				c.Abort(reason)
			case 2:
				time.Sleep(150 * time.Millisecond)
			}
			return comm.Wait(ctx)(c.AllReduce(ctx, tr.some(t, c, npu.F32, 50000), comm.Sum))
		})
		if !errors.Is(errs[1], reason) {
			t.Errorf("own error: %v", errs[1])
		}
		for _, r := range []int{0, 2} {
			if e, err := as[*comm.PeerError](r, errs[r]); err != nil {
				t.Error(err)
			} else if e.Rank != 1 || !strings.Contains(e.Reason, reason.Error()) {
				t.Errorf("rank %d: %v", r, e)
			}
		}
	})
	tr.broken(t, g)
}

// close tests Close alone, twice, with a pending call, and with waiting peers.
func (tr Transport) close(t *testing.T) {
	g := tr.group(t, 2)
	all(t, g, func(ctx context.Context, c comm.Communicator) error {
		if err := comm.Wait(ctx)(c.AllReduce(ctx, of[float32](tr, t, c, 1), comm.Sum)); err != nil {
			return err
		}
		if c.Rank() == 0 { // goes at once; the other may still be in the call
			return c.Close()
		}
		return nil
	})
	within(t, 5*time.Second, func() {
		ctx := context.Background()
		h, err := g[1].Barrier(ctx)
		if err == nil {
			err = h.Wait(ctx)
		}
		if e, err := as[*comm.PeerError](1, err); err != nil {
			t.Error(err)
		} else if e.Rank != 0 {
			t.Error(e)
		}
		for range 2 {
			if err := errors.Join(g[0].Close(), g[1].Close()); err != nil {
				t.Error(err)
			}
		}
		if _, err := g[0].Barrier(ctx); !errors.Is(err, comm.ErrClosed) {
			t.Errorf("call after Close: %v", err)
		}
		if _, err := g[0].Alloc(10); err == nil {
			t.Error("alloc after Close")
		}
	})

	g = tr.group(t, 2)
	ctx := context.Background()
	h, err := g[0].AllReduce(ctx, tr.some(t, g[0], npu.F32, 100000), comm.Sum)
	if err != nil {
		t.Fatal(err)
	}
	recv, err := g[0].Recv(ctx, tr.some(t, g[0], npu.F32, 10), 1)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { g[0].Close() })
	within(t, 5*time.Second, func() {
		for _, h := range []comm.Handle{h, recv} {
			if err := h.Wait(ctx); !errors.Is(err, comm.ErrClosed) {
				t.Errorf("pending call at Close: %v", err)
			}
		}
	})
}

// alloc tests memory: zeroed, aligned, usable at offsets, freed.
func (tr Transport) alloc(t *testing.T) {
	g := tr.group(t, 2)
	all(t, g, func(ctx context.Context, c comm.Communicator) error {
		if _, err := c.Alloc(-1); err == nil {
			return errors.New("negative alloc succeeds")
		}
		for i := range 20 {
			b, err := c.Alloc(int64(i) * 100000)
			if err != nil {
				return err
			}
			n := int64(i) * 100000
			if b.Bytes() != n || tr.Device == nil && int64(len(b.Host())) != n {
				return fmt.Errorf("alloc %d has %d bytes, host %d", i, b.Bytes(), len(b.Host()))
			}
			whole := comm.Mem{Ptr: npu.Ptr{Buf: b}, Elems: n, DType: npu.I8}
			h, err := tr.get(c, whole)
			if err != nil {
				return err
			}
			for j, v := range h {
				if v != 0 {
					return fmt.Errorf("alloc %d is not zeroed at %d", i, j)
				}
				h[j] = 1
			}
			if err := tr.put(c, whole, h); err != nil {
				return err
			}
			if i > 0 {
				if err := comm.Wait(ctx)(c.AllReduce(ctx, whole.Slice(4000, 20000), comm.Sum)); err != nil {
					return err
				}
				if h, err = tr.get(c, whole); err != nil {
					return err
				}
				if h[3999] != 1 || h[4000] != 2 || h[23999] != 2 || h[24000] != 1 {
					return fmt.Errorf("alloc %d: wrong place", i)
				}
			}
			if err := errors.Join(b.Free(), b.Free()); err != nil {
				return err
			}
		}
		return nil
	})
}

// consensus tests agreement, and that the first difference is named.
func (tr Transport) consensus(t *testing.T) {
	g := tr.group(t, 3)
	items := func(n int, third string) []comm.Item {
		list := []comm.Item{{Name: "a", Text: "1"}, {Name: "b", Text: "2"}, {Name: "c", Text: third}, {Name: "d", Text: "4"}}
		return list[:n]
	}
	all(t, g, func(ctx context.Context, c comm.Communicator) error {
		return comm.Consensus(ctx, c, "letters", items(4, "3"))
	})
	for name, odd := range map[string][]comm.Item{"value": items(4, "x"), "short": items(2, "")} {
		for r, err := range each(t, g, func(ctx context.Context, c comm.Communicator) error {
			if c.Rank() == 1 {
				return comm.Consensus(ctx, c, "letters", odd)
			}
			return comm.Consensus(ctx, c, "letters", items(4, "3"))
		}) {
			if e, err := as[*comm.ConsensusError](r, err); err != nil {
				t.Error(name, err)
			} else if e.Index != 2 || len(e.Ranks) != 1 || e.Ranks[0] != 1 || e.Mine != "c = 3" {
				t.Errorf("%s: rank %d: %v", name, r, e)
			}
		}
	}
}

// stats tests the counters.
func (tr Transport) stats(t *testing.T) {
	g := tr.group(t, 2)
	all(t, g, func(ctx context.Context, c comm.Communicator) error {
		before := c.Stats()
		h, err := c.AllReduce(ctx, tr.some(t, c, npu.F32, 1000), comm.Sum)
		if err := comm.Wait(ctx)(h, err); err != nil {
			return err
		}
		after := c.Stats()
		if after.Calls != before.Calls+1 || after.Bytes != before.Bytes+4000 {
			return fmt.Errorf("stats %+v after %+v", after, before)
		}
		transfer, waited, apart := h.Took()
		if transfer < 0 || waited < 0 || transfer+waited > patience {
			return fmt.Errorf("took %v, waited %v", transfer, waited)
		}
		switch mingled := after.Mingled - before.Mingled; {
		case !apart && !tr.Deaf:
			return errors.New("Took does not tell waiting and transfer apart")
		case !apart && waited != 0:
			return fmt.Errorf("waited %v, but that is not told apart from the transfer", waited)
		case mingled != 0 == apart:
			return fmt.Errorf("apart is %v, but the counters have %d mingled calls", apart, mingled)
		}
		return nil
	})
}
