package hccl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

const (
	dropTime    = 5 * time.Second  // for the device to let go of collectives
	goodbyeTime = 30 * time.Second // for the other ranks to close, too
	destroyTime = 15 * time.Second // for HCCL to destroy its communicator, when all ranks do
	closeTime   = 5 * time.Second  // Close waits no longer for that
)

// Abort breaks the group with a reason of this rank, and the control communicator with it.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	c.shatter(fmt.Errorf("comm: rank %d aborted: %w", c.rank, reason), reason)
}

// breakWith breaks the group with an error found here, and tells the peers.
func (c *Comm) breakWith(err error) { c.shatter(err, err) }

func (c *Comm) shatter(err, tell error) {
	c.mu.Lock()
	first := c.broken == nil
	if first {
		c.broken = err
	}
	c.mu.Unlock()
	if !first {
		return
	}
	if c.posts != nil {
		c.posts.Abort(tell)
	}
	c.control.Abort(tell)
	c.end()
}

// drop makes the device let go of unfinished collectives: their memory is free afterwards, unless it reports false.
func (c *Comm) drop() bool {
	c.mu.Lock()
	first, cause := !c.dropped, c.broken
	c.dropped = true
	c.mu.Unlock()
	if !first {
		return c.free.Load()
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	c.free.Store(c.rail.Abort(ctx, cause) == nil)
	return c.free.Load()
}

// Close leaves the group: pending calls fail with comm.ErrClosed. HCCL's communicator is destroyed when all ranks close, because destroying it waits for
// the others; Close does not wait for that longer than a few seconds. Memory from Alloc stays.
func (c *Comm) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	orderly := c.broken == nil && c.pending == 0
	if c.broken == nil {
		c.broken = comm.ErrClosed
	}
	if first {
		for _, l := range c.pairs.lanes {
			close(l)
		}
	}
	c.mu.Unlock()
	c.end()
	c.filled.Broadcast()
	if first {
		go func() {
			defer close(c.left)
			c.wg.Wait()
			c.dismantle(orderly)
		}()
	}
	select {
	case <-c.left:
		if first {
			return c.leaving
		}
	case <-time.After(c.closeTime):
		c.hold() // the caller may close the device before the others come
	}
	return nil
}

// dismantle gives everything back, in the order that HCCL wants: communicator, events, stream. Nothing else uses c any more. Errors after a group broke
// tell nothing new: what cannot be given back then is gone with the process. The communicator of a group that broke stays: destroying it may block for
// ever where a peer is gone, and the device's thread with it.
func (c *Comm) dismantle(orderly bool) {
	var errs []error
	gone := false
	if orderly && c.goodbye() || c.insist {
		err := c.destroy(destroyTime)
		gone = err == nil
		errs = append(errs, err)
	}
	if gone {
		c.letGo()
	} else {
		c.hold()
	}
	for _, ev := range c.events {
		errs = append(errs, ev.Close())
	}
	errs = append(errs, c.pairs.close(), c.rail.Close())
	if c.posts != nil {
		errs = append(errs, c.posts.Close())
	}
	if err := errors.Join(errs...); err != nil && orderly {
		c.leaving = fmt.Errorf("comm: hccl: rank %d: close: %w", c.rank, err)
	}
}

// hold leaves HCCL's communicator to the end of the process, unless it is gone.
func (c *Comm) hold() {
	c.mu.Lock()
	hold := (c.group != 0 || c.unsure) && !c.gone && !c.held
	c.held = c.held || hold
	c.mu.Unlock()
	if hold {
		c.setHeld(true)
	}
}

// letGo undoes hold, once the communicator is gone.
func (c *Comm) letGo() {
	c.mu.Lock()
	held := c.held
	c.gone, c.held = true, false
	c.mu.Unlock()
	if held {
		c.setHeld(false)
	}
}

func (c *Comm) setHeld(on bool) {
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	_ = c.port.Hold(ctx, on) // where it fails, the device is gone or does not answer, and nothing will reset it
}

// destroy ends HCCL's communicator.
func (c *Comm) destroy(limit time.Duration) error {
	if c.group == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.port.Last(ctx, func() error { return c.lib.Destroy(c.group) })
}

// goodbye tells the others that this rank closes, and reports whether all do.
func (c *Comm) goodbye() bool {
	if c.size == 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	flat := make([]int64, words*c.size)
	mine := [words]int64{0, goodbye}
	if err := comm.Wait(ctx)(c.posts.AllGather(ctx, comm.HostOf(flat), comm.HostOf(mine[:]))); err != nil {
		return false
	}
	for r := range c.size {
		if flat[words*r+1] != goodbye {
			return false
		}
	}
	return true
}
