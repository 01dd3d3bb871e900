package staged

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// lane executes calls in order, on a stream.
type lane struct {
	c      *Comm
	stream npu.Stream
	calls  chan *call    // enqueued, for the waiter
	idle   chan struct{} // closed when close has waited for the stream

	mu   sync.Mutex // held while a call is enqueued
	gone bool
	bufs []npu.Buffer // page-locked; a smaller one may still be in use by calls before
	in   npu.Buffer
	out  npu.Buffer
}

// inFlight is how many calls of a lane may be in flight before the next one waits.
const inFlight = 1024

// lane returns the lane of a call.
func (c *Comm) lane(what comm.Call) (*lane, error) {
	id, name := 0, "staging"
	switch what.Kind {
	case comm.Send:
		id, name = what.Root+1, fmt.Sprintf("send to %d", what.Root)
	case comm.Recv:
		id, name = -what.Root-1, fmt.Sprintf("receive from %d", what.Root)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	if l := c.lanes[id]; l != nil {
		return l, nil
	}
	s, err := c.dev.NewStream(name)
	if err != nil {
		return nil, fmt.Errorf("comm: staged: %w", err)
	}
	l := &lane{c: c, stream: s, calls: make(chan *call, inFlight), idle: make(chan struct{})}
	c.lanes[id] = l
	c.wg.Go(l.wait)
	return l, nil
}

// issue checks a call and enqueues it.
func (c *Comm) issue(ctx context.Context, what comm.Call, out, in comm.Mem, after npu.Event) (comm.Handle, error) {
	if err := c.fault(); err != nil {
		return nil, err
	}
	if err := what.Check(c.Rank(), c.Size(), out, in); err != nil {
		return nil, err
	}
	for _, m := range []comm.Mem{out, in} {
		if m.Elems > 0 && m.Ptr.Buf.Host() != nil {
			return nil, fmt.Errorf("comm: %v on rank %d: this is host memory, and the transport moves the memory of %s\nhint: use the control communicator",
				what, c.Rank(), c.dev.Info().Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("comm: %v on rank %d: not started: %w", what, c.Rank(), context.Cause(ctx))
	}
	l, err := c.lane(what)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, comm.ErrClosed
	}
	k := &call{c: c, what: what, ctx: ctx, over: make(chan struct{}), done: make(chan struct{})}
	if err := l.room(k, out, in); err != nil {
		return nil, err
	}
	if k.event, err = c.event(); err != nil {
		return nil, err
	}
	k.unsent = l.enqueue(k, out, in, after)
	l.calls <- k
	return k, nil
}

// room gives a call page-locked memory. The call before may still use the same: the stream keeps them in order.
func (l *lane) room(k *call, out, in comm.Mem) error {
	grow := func(b *npu.Buffer, m comm.Mem) (comm.Mem, error) {
		if m.Elems == 0 {
			return comm.Mem{DType: m.DType}, nil
		}
		if *b == nil || (*b).Bytes() < m.Bytes() {
			larger, err := npu.AllocHost(l.c.dev, m.Bytes())
			if err != nil {
				return comm.Mem{}, fmt.Errorf("comm: %v on rank %d: %w", k.what, l.c.Rank(), err)
			}
			*b, l.bufs = larger, append(l.bufs, larger)
		}
		return comm.Mem{Ptr: npu.Ptr{Buf: *b}, Elems: m.Elems, DType: m.DType}, nil
	}
	var err error
	if k.in, err = grow(&l.in, in); err != nil {
		return err
	}
	if k.out = k.in; two(k.what.Kind) {
		k.out, err = grow(&l.out, out)
	}
	return err
}

// enqueue puts copies and the host's part on the stream.
func (l *lane) enqueue(k *call, out, in comm.Mem, after npu.Event) error {
	steps := make([]error, 0, 5)
	if after != nil {
		steps = append(steps, l.stream.Wait(after))
	}
	rank := l.c.Rank()
	if in.Elems > 0 && reads(k.what, rank) {
		steps = append(steps, l.stream.CopyOut(k.in.Host(), in.Ptr))
	}
	steps = append(steps, l.stream.Do(k.exchange))
	if out.Elems > 0 && writes(k.what, rank) {
		steps = append(steps, l.stream.CopyIn(out.Ptr, k.out.Host()))
	}
	steps = append(steps, l.stream.Record(k.event))
	return errors.Join(steps...)
}

// two reports whether a call has two memories.
func two(k comm.Kind) bool {
	return k == comm.ReduceScatter || k == comm.AllGather || k == comm.AllToAll
}

// reads reports whether this rank's memory matters before the call.
func reads(c comm.Call, rank int) bool {
	return c.Kind != comm.Recv && (c.Kind != comm.Broadcast || c.Root == rank)
}

// writes reports whether the call changes this rank's memory.
func writes(c comm.Call, rank int) bool {
	switch c.Kind {
	case comm.Send:
		return false
	case comm.Broadcast:
		return c.Root != rank
	case comm.Reduce:
		return c.Root == rank
	}
	return true
}

// wait finishes calls in order, as the device reaches their events. While it waits it looks whether the group is still whole.
func (l *lane) wait() {
	for k := range l.calls {
		err := k.unsent
		if err == nil {
			err = k.reached()
		}
		if err != nil {
			err = k.blame(err)
			if !errors.Is(err, comm.ErrClosed) {
				l.c.setBroken(err)
				l.c.spread(err)
			}
		}
		k.settle(err)
		if err != nil {
			l.quiet(k)
		}
		close(k.done)
	}
}

// quiet waits until the device has left a failed call behind.
func (l *lane) quiet(k *call) {
	for {
		if there, _ := k.lookFor(look); there {
			return
		}
		select {
		case <-l.idle:
			return
		default:
		}
	}
}

// spread tells the peers of an error that broke this rank.
func (c *Comm) spread(err error) {
	c.host.Abort(err)
	c.ctl.Abort(err)
}

// close waits until the stream is idle, and frees everything.
func (l *lane) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	close(l.calls)
	// What is left ends by itself: the host's group is closed. Only the device itself may hold it up.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := l.stream.Sync(ctx)
	close(l.idle)
	if ctx.Err() != nil {
		return fmt.Errorf("comm: staged: rank %d: stream %s is still busy a minute after Close; its memory is not freed: %w", l.c.Rank(), l.stream.Name(), err)
	}
	errs := []error{l.stream.Close()} // an error of its work was the calls'
	for _, b := range l.bufs {
		errs = append(errs, b.Free())
	}
	l.bufs, l.in, l.out = nil, nil, nil
	return errors.Join(errs...)
}
