package hccl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// completer follows the calls in order, each to its end.
func (c *Comm) completer() {
	defer c.wg.Done()
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.filled.Wait()
		}
		if len(c.queue) == 0 {
			c.mu.Unlock()
			return
		}
		k := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.finish(k, c.follow(k))
	}
}

// follow accompanies a call: all ranks must announce it, and the device must reach its end.
func (c *Comm) follow(k *call) error {
	if err := c.fault(); err != nil {
		return err
	}
	ctx, cancel := c.patient(k.ctx)
	defer cancel()
	begun := time.Now()
	if !c.before && k.begin != nil {
		if err := c.reach(k, k.begin, c.device(ctx)); err != nil {
			return err
		}
		begun = time.Now()
	}
	differ, err := c.announce(ctx, k)
	if err != nil {
		return err
	}
	if differ != nil {
		if k.begin != nil { // HCCL has the call, and hangs in it
			c.breakWith(differ)
		}
		return differ
	}
	met := time.Now()
	if c.before {
		c.mu.Lock()
		err = c.launch(k)
		c.mu.Unlock()
		if err != nil {
			return failed(c.rank, k.name(), err)
		}
	}
	switch {
	case k.begin != nil:
		err = c.reach(k, k.end, c.transfer(ctx, k, met))
	case k.route == byHost:
		err = c.onHost(ctx, k)
	}
	if err != nil {
		return err
	}
	k.waited, k.transfer = met.Sub(begun), time.Since(met)
	if k.begin != nil {
		k.first, k.last = k.begin.At(), k.end.At()
		k.waited = min(k.waited, k.last-k.first)
		k.transfer = k.last - k.first - k.waited
		k.origin = c.since(time.Now().Add(-k.last))
	}
	return nil
}

// since estimates when the device was opened from a time that is not before that: how late the host sees an event varies. It follows clocks that drift.
// Only the completer calls it.
func (c *Comm) since(at time.Time) time.Time {
	if late := at.Sub(c.origin); c.origin.IsZero() || late < 0 {
		c.origin = at
	} else {
		c.origin = c.origin.Add(late / 64)
	}
	return c.origin
}

// onHost does a call in host memory, in the group of the announcements: there it has the place that it has here.
func (c *Comm) onHost(ctx context.Context, k *call) error {
	if c.size == 1 {
		if dst, src := k.out.Host(), k.in.Host(); &dst[0] != &src[0] {
			copy(dst, src)
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(c.fault()) })()
	h, err := comm.Do(ctx, c.posts, k.what, k.out, k.in)
	if err == nil {
		err = h.Wait(ctx)
	}
	if err == nil {
		return nil
	}
	if why := c.fault(); why != nil {
		return why
	}
	return renamed(c.rank, k.name(), err)
}

// limit says when a wait for the device must end: it returns the error if that is now.
type limit func(now time.Time) error

// device limits the wait for this rank's own device, which may compute for as long as long work lasts.
func (c *Comm) device(ctx context.Context) limit {
	begin := time.Now()
	return func(now time.Time) error {
		if d := now.Sub(begin); d >= c.longWork {
			return fmt.Errorf("waiting for the device of this rank: %w after %v", context.DeadlineExceeded, d.Round(time.Millisecond))
		}
		return ctxErr(ctx, "waiting for the device of this rank")
	}
}

// transfer limits a collective that all ranks have begun.
func (c *Comm) transfer(ctx context.Context, k *call, met time.Time) limit {
	return func(now time.Time) error {
		if err := ctx.Err(); err == context.DeadlineExceeded {
			return c.stalled(k, now.Sub(met))
		}
		if p := comm.Patience(ctx); p > 0 && now.Sub(met) >= p {
			return c.stalled(k, now.Sub(met))
		}
		return ctxErr(ctx, "waiting for the collective")
	}
}

func ctxErr(ctx context.Context, what string) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, context.Cause(ctx))
}

// stalled asks the others, because a process that is frozen in the middle of a collective does not answer, and HCCL what it knows.
func (c *Comm) stalled(k *call, after time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	var late *comm.TimeoutError
	var gone *comm.PeerError
	_, err := c.exchange(ctx, [words]int64{k.number, stall})
	switch {
	case errors.As(err, &late):
		e := *late
		e.Call, e.After = k.name(), after
		return &e
	case errors.As(err, &gone): // another rank knows more
		return renamed(c.rank, k.name(), err)
	}
	e := &StallError{Call: k.name(), After: after}
	ctx, cancel = context.WithTimeout(context.Background(), time.Second) // the thread may hang in HCCL
	defer cancel()
	e.Said = c.port.OnThread(ctx, func() error { return c.lib.AsyncError(c.group) })
	return e
}

// reach waits until the device reaches an event of the call, and looks after the group meanwhile.
func (c *Comm) reach(k *call, ev npu.Event, over limit) error {
	for {
		slice, cancel := context.WithTimeout(c.life, lookEvery)
		err := ev.Sync(slice)
		ended := slice.Err() != nil
		cancel()
		switch {
		case err == nil:
			return nil
		case !ended:
			return failed(c.rank, k.name(), err)
		}
		if err := c.fault(); err != nil {
			return err
		}
		if err := c.peers(); err != nil {
			return renamed(c.rank, k.name(), err)
		}
		if err := over(time.Now()); err != nil {
			switch err.(type) {
			case *StallError, *comm.TimeoutError, *comm.PeerError:
				return err
			}
			return failed(c.rank, k.name(), err)
		}
	}
}

// finish ends a call. Of a call that failed, the device must let go of its memory first.
func (c *Comm) finish(k *call, err error) {
	if _, differ := err.(*comm.MismatchError); err != nil && (!differ || k.begin != nil) {
		c.breakWith(err)
		if k.end != nil && !k.end.Done() && !c.drop() {
			err = comm.InUse(err)
		}
	}
	select {
	case <-k.issued:
	default: // it was never given to the device
		close(k.issued)
	}
	k.err = err
	c.mu.Lock()
	c.pending--
	if err == nil {
		c.stats.Add(max(k.in.Bytes(), k.out.Bytes()), wire(k.what, c.rank, c.size), k.transfer, k.waited, !k.mingled)
	}
	if k.begin != nil {
		c.events = append(c.events, k.begin, k.end)
	}
	c.mu.Unlock()
	close(k.done)
}
