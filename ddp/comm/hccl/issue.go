package hccl

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
)

// issue checks a call, gives it to the device unless ranks compare it first, and queues it for the completer.
func (c *Comm) issue(ctx context.Context, k *call) (*call, error) {
	k.c, k.ctx = c, ctx
	k.done, k.issued = make(chan struct{}), make(chan struct{})
	if err := c.check(k); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.broken != nil {
		defer c.mu.Unlock()
		return nil, c.broken
	}
	c.calls++
	k.number = c.calls
	var err error
	if !c.before {
		err = c.launch(k)
	}
	if err == nil {
		c.pending++
		c.queue = append(c.queue, k)
		c.filled.Signal()
	}
	c.mu.Unlock()
	if err != nil { // peers wait for this call
		err = failed(c.rank, k.name(), err)
		c.breakWith(err)
		return nil, err
	}
	if k.ordered { // its event must be recorded when this returns
		<-k.issued
		if k.end == nil {
			<-k.done
			return nil, k.err
		}
	}
	return k, nil
}

// check refuses what one rank can see to be wrong, and finds the route.
func (c *Comm) check(k *call) error {
	if err := k.what.Check(c.rank, c.size, k.out, k.in); err != nil {
		return err
	}
	if err := k.ctx.Err(); err != nil {
		return fmt.Errorf("comm: %v on rank %d: not started: %w", k.what, c.rank, context.Cause(k.ctx))
	}
	refuse := func(err error) error { return fmt.Errorf("comm: %v on rank %d: %w", k.what, c.rank, err) }
	if k.what.Elems > 0 {
		in, out := k.in.Ptr.Buf.Host() == nil, k.out.Ptr.Buf.Host() == nil
		if in != out {
			return refuse(errors.New("one side is host memory, the other is not"))
		}
		if k.route = byHost; in {
			k.route = byDevice
		}
	}
	switch {
	case k.ordered && k.after == nil:
		return refuse(errors.New("the event is nil"))
	case k.ordered && k.route == byHost:
		return refuse(errors.New("only device memory can be reduced behind an event of the device"))
	case k.route == byDevice:
		if err := refusal(k.what); err != nil {
			return refuse(err)
		}
		for _, m := range []comm.Mem{k.in, k.out} {
			if _, err := c.port.Address(m.Ptr, m.Bytes()); err != nil {
				return refuse(err)
			}
		}
	}
	return nil
}

// launch enqueues the call on the rail: begin, the collective, end. mu is held, which keeps the order.
func (c *Comm) launch(k *call) (err error) {
	defer close(k.issued)
	if k.route != byDevice && !k.ordered {
		return nil
	}
	begin, err := c.event()
	if err != nil {
		return err
	}
	end, err := c.event()
	defer func() {
		if err != nil { // they rest until Close
			c.events = append(c.events, begin)
			if end != nil {
				c.events = append(c.events, end)
			}
		}
	}()
	if err != nil {
		return err
	}
	if k.after != nil {
		if err := c.rail.Wait(k.after); err != nil {
			return err
		}
	}
	if err := c.rail.Record(begin); err != nil {
		return err
	}
	if k.route == byDevice {
		if err := c.enqueue(k); err != nil {
			return err
		}
	}
	if err := c.rail.Record(end); err != nil {
		return err
	}
	k.begin, k.end = begin, end
	return nil
}

// enqueue gives the collective to HCCL, or to the device where there is only one rank.
func (c *Comm) enqueue(k *call) error {
	if c.size == 1 {
		return c.rail.Copy(k.out.Ptr, k.in.Ptr, k.in.Bytes())
	}
	in, err := c.port.Address(k.in.Ptr, k.in.Bytes())
	if err != nil {
		return err
	}
	out, err := c.port.Address(k.out.Ptr, k.out.Bytes())
	if err != nil {
		return err
	}
	return c.rail.Raw(work(c.lib, k.what, out, in, c.size, c.group))
}
