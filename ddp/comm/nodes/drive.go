package nodes

import (
	"errors"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [driving]
//
// Calls are executed one after another, by one goroutine at a time (Comm.driving): the worker, or a caller in Wait of the first call if the worker has
// not begun. The driver waits for the groups without a deadline. What ends its wait otherwise is the guard, which breaks the groups, or Close.

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
		c.drive(nil)
	}
}

// drive executes calls until last is over or the queue is empty. The caller has set driving; drive resets it.
func (c *Comm) drive(last *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 && (last == nil || !last.end.Over()) && !c.closed {
		k := c.queue[0]
		c.mu.Unlock()
		err := c.execute(k)
		c.mu.Lock()
		if c.closed {
			break // Close ends the calls, when the groups have let go of their memory
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

// execute does a call. After an error other than a mismatch the groups are broken, and no longer touch the call's memory.
func (c *Comm) execute(k *call) error {
	if err := c.fault(); err != nil {
		return err
	}
	err := c.run(k)
	if err == nil {
		return nil
	}
	if m := (*comm.MismatchError)(nil); !errors.As(err, &m) {
		err = c.fail(err, true)
	}
	c.quiesce()
	return err
}

// run greets, and moves what the greeting has not.
func (c *Comm) run(k *call) error {
	var job job
	var err error
	switch {
	case c.side.group != nil:
		return c.pass(k, c.side.group, c.side.level)
	case c.nodes() == 1:
		err = c.pass(k, c.inner, inwards)
	default:
		job = c.plan(k)
		err = c.greet(k, &job)
	}
	if err == nil && k.do != nil {
		return k.do(k)
	}
	if err != nil {
		return err
	}
	return c.pump(k, &job)
}

// pass makes the call in a group that has all ranks that make it.
func (c *Comm) pass(k *call, group comm.Communicator, l level) error {
	h, err := c.fly(comm.Do(c.ctx, group, k.what, k.out, k.in))
	if err == nil {
		err = c.land(h)
	}
	if m := (*comm.MismatchError)(nil); errors.As(err, &m) {
		own := *m
		own.Rank, own.Peer = c.rankOf(l, m.Rank), c.rankOf(l, m.Peer)
		return &own
	}
	if err != nil {
		return c.explain(k, l, err)
	}
	k.met(h)
	k.heard.Store(everybody)
	return nil
}

// fly remembers a call of a group until it is over.
func (c *Comm) fly(h comm.Handle, err error) (comm.Handle, error) {
	if err == nil && h != nil {
		c.flying = append(c.flying, h)
	}
	return h, err
}

// land waits for a call of a group. nil is no call.
func (c *Comm) land(h comm.Handle) error {
	if h == nil {
		return nil
	}
	err := h.Wait(c.ctx)
	if err != nil && c.ctx.Err() != nil {
		return comm.ErrClosed // it may still be under way
	}
	for i, f := range c.flying {
		if f == h {
			c.flying = append(c.flying[:i], c.flying[i+1:]...)
			break
		}
	}
	return err
}

// quiesce waits until no group touches memory of the call. The groups are broken, or the calls will end in order.
func (c *Comm) quiesce() {
	for _, h := range c.flying {
		select {
		case <-h.Done():
		case <-c.ctx.Done(): // Close waits for the groups
		}
	}
	c.flying = c.flying[:0]
}
