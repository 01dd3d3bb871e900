package shm

import (
	"context"
	"errors"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [driving]
//
// The calls of a communicator are executed one after another, each as a state machine that a driver runs. There is at
// most one driver at a time (Comm.driving, under mu), and only the driver touches round, slots, near and the internals of the first call in the
// queue. Three parties drive:
//
//   - the caller that issues a call of up to inlineBytes on an empty queue, as long as it does not have to sleep;
//   - a caller in Wait, until its call is complete;
//   - the worker, until the queue is empty.
//
// A small call (one round) that has been published needs nothing more from this rank until its result is wanted: peers read its data
// from the slot. So it does not wake the worker; it completes in Wait, or when another call follows it.

const (
	// inlineBytes bounds the work that a call does before it returns: some 30 microseconds.
	inlineBytes = 1 << 20
	// untimed calls are so short that reading the clock would be a large part of them. They are timed only if they have to wait; otherwise
	// they count as having taken no time.
	untimed = 64 << 10
	// Calls up to this size go through slots in one round even if memory is shared. With a processor for each rank a round is cheap, so data
	// should stay in place; with more ranks than processors a round costs context switches, and copying is cheap.
	smallRoomy   = 1 << 10
	smallCrowded = 16 << 10
)

type mode int

const (
	inline  mode = iota // within the call: do not sleep
	waiting             // within Wait
	working             // the worker
)

// call is a collective in progress, and its Handle.
type call struct {
	c       *Comm
	what    comm.Call
	out, in comm.Mem
	ctx     context.Context
	number  int64
	issued  time.Duration // by the clock of the Comm
	arrived time.Duration // all ranks were there
	ended   time.Duration
	lane    *laneState // Send and Recv: the lane that executes it; nil for collectives
	machine

	end comm.Ending // under Comm.mu
}

// issue queues a collective and executes as much of it as possible inline. Most small calls complete here, so this path determines
// latency: the call lives in c.scratch and is allocated only if it has to outlive the function.
func (c *Comm) issue(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
	switch what.Kind {
	case comm.Send, comm.Recv:
		return c.post(ctx, what, in, lane{what.Root, what.Kind == comm.Send})
	}
	if err := c.check(ctx, what, out, in); err != nil {
		return nil, err
	}
	bytes := what.Elems * int64(what.DType.Size())
	k := call{c: c, what: what, out: out, in: in, ctx: ctx}
	k.small = bytes <= c.smallBytes
	if bytes > untimed {
		k.issued = time.Since(c.base)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	c.calls++
	k.number = c.calls
	if c.driving || len(c.queue) > 0 || bytes > inlineBytes {
		k.stamp()
		own := new(call)
		*own = k
		c.queue = append(c.queue, own)
		c.kick()
		return own, nil
	}
	// Holding mu is holding the queue: other callers could only wait for this call anyway.
	c.scratch = k
	over, err := c.attempt(&c.scratch)
	if over && err == nil {
		c.scratch.account()
		transfer, waited := c.scratch.took()
		if transfer|waited == 0 {
			return untimedCall, nil
		}
		return &finished{transfer, waited}, nil
	}
	own := new(call)
	*own = c.scratch
	if over {
		own.finish(err)
		return own, nil
	}
	c.queue = append(c.queue, own)
	if !own.small {
		c.kick()
	}
	return own, nil
}

// attempt executes a new call as far as possible without sleeping. mu is held. A call that meets trouble is left to a later driver.
func (c *Comm) attempt(k *call) (over bool, err error) {
	k.begin()
	for {
		if ok, _ := c.await(k, inline, nil); !ok {
			return false, nil
		}
		if over, err := k.step(); over {
			return true, c.verdict(err)
		}
	}
}

// verdict breaks the group for errors other than a mismatch. mu is held.
func (c *Comm) verdict(err error) error {
	if err == nil {
		return nil
	}
	if m := (*comm.MismatchError)(nil); errors.As(err, &m) {
		return err
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.breakWith(err)
}

// kick wakes the worker. mu is held.
func (c *Comm) kick() {
	if c.closed {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// worker drives whenever there is work and no other driver.
func (c *Comm) worker() {
	defer c.wg.Done()
	for range c.wake {
		c.mu.Lock()
		if c.driving || len(c.queue) == 0 {
			c.mu.Unlock()
			continue
		}
		c.driving = true
		c.mu.Unlock()
		c.drive(working, nil, nil)
	}
}

// drive runs calls from the queue until call last is over, the queue is empty, or progress would require sleeping longer than mode and
// ctx allow. The caller has set driving; drive resets it.
func (c *Comm) drive(m mode, last *call, ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 && (last == nil || !last.end.Over()) {
		k := c.queue[0]
		c.mu.Unlock()
		over, err := c.advance(k, m, ctx)
		c.mu.Lock()
		if !over {
			break
		}
		c.queue[0] = nil
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
		k.finish(err)
	}
	c.driving = false
	c.idle.Broadcast()
	if len(c.queue) > 0 {
		c.kick()
	}
}

// advance runs one call as far as possible. over is false if another driver must continue later.
func (c *Comm) advance(k *call, m mode, ctx context.Context) (over bool, err error) {
	for {
		if c.down.Load() {
			return true, c.fault(k.what, k.number)
		}
		if k.stage == fresh {
			k.begin()
		}
		ok, err := c.await(k, m, ctx)
		if err != nil {
			return true, err
		}
		if !ok {
			return false, nil
		}
		if over, err := k.step(); over {
			c.mu.Lock()
			defer c.mu.Unlock()
			return true, c.verdict(err)
		}
	}
}

// finish marks the call complete. Comm.mu is held.
func (k *call) finish(err error) {
	if k.end.Finish(err) {
		k.account()
	}
}

// account records the time, and counts the call if it succeeded. Comm.mu is held.
func (k *call) account() {
	if k.issued != 0 {
		k.ended = time.Since(k.c.base)
	}
	if k.end.Err() != nil {
		return
	}
	transfer, waited := k.took()
	k.c.stats.Add(max(k.in.Bytes(), k.out.Bytes()), k.wire, transfer, waited, true)
}

// stamp starts the clock of the call if it is not running.
func (k *call) stamp() {
	if k.issued == 0 {
		k.issued = time.Since(k.c.base)
		k.arrived = k.issued
	}
}

// finished is the handle of a call that was complete when it returned.
type finished struct{ transfer, waited time.Duration }

var untimedCall = &finished{}

func (f *finished) Wait(context.Context) error { return nil }
func (f *finished) Done() <-chan struct{}      { return comm.Closed() }
func (f *finished) Took() (transfer, waited time.Duration, apart bool) {
	return f.transfer, f.waited, true
}

func (k *call) took() (transfer, waited time.Duration) {
	if !k.met {
		return 0, k.ended - k.issued
	}
	return k.ended - k.arrived, k.arrived - k.issued
}

// Took returns the time spent moving data and the time spent waiting for the last rank.
func (k *call) Took() (transfer, waited time.Duration, apart bool) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	transfer, waited = k.took()
	return transfer, waited, true
}

// Done is closed on completion. Calling it wakes the worker.
func (k *call) Done() <-chan struct{} {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if !k.end.Over() {
		k.c.kick()
	}
	return k.end.Done()
}

// Wait blocks until completion or until ctx ends; in the latter case the call continues.
func (k *call) Wait(ctx context.Context) error {
	c := k.c
	c.mu.Lock()
	for k.lane == nil && !k.end.Over() && !c.driving && ctx.Err() == nil {
		c.driving = true
		c.mu.Unlock()
		c.drive(waiting, k, ctx)
		c.mu.Lock()
	}
	return k.end.Wait(&c.mu, ctx, k.ctx, k.name)
}

func (k *call) name() string { return k.what.Number(k.number) }
