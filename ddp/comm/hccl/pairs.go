package hccl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Note [pairs]
//
// Send and Recv have an order of their own between a pair of ranks, apart from the collectives. On one HCCL communicator that order deadlocks: a send
// blocks its stream until the receiver's stream gets to the receive, which may be behind a collective that waits for the sender. A communicator for each
// pair would avoid it, at twice the buffer size of device memory each. Nothing in training sends between pairs, so messages of device memory go through
// page-locked memory and the group of the announcements, which has the right order and names a rank that is late or gone.

// lane is one direction of exchange with one peer.
type lane struct {
	peer int
	send bool
}

// pairs executes Send and Recv: the messages of a lane one after another, lanes independently.
type pairs struct {
	lanes map[lane]chan *call // under Comm.mu; closed with the group

	mu     sync.Mutex // one message at a time copies to or from the device
	stream npu.Stream // made for the first message of device memory
}

// laneRoom is how many messages of a lane may be in flight before a call blocks.
const laneRoom = 256

// message queues a Send or a Recv.
func (c *Comm) message(ctx context.Context, what comm.Call, m comm.Mem, id lane) (comm.Handle, error) {
	k := &call{c: c, ctx: ctx, what: what, in: m, out: m, done: make(chan struct{}), issued: make(chan struct{})}
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
	l := c.pairs.lanes[id]
	if l == nil {
		if c.pairs.lanes == nil {
			c.pairs.lanes = map[lane]chan *call{}
		}
		l = make(chan *call, laneRoom)
		c.pairs.lanes[id] = l
		c.wg.Go(func() { c.deliver(l) })
	}
	c.pending++
	defer c.mu.Unlock()
	select {
	case l <- k:
		return k, nil
	default:
		c.pending--
		return nil, fmt.Errorf("comm: %v on rank %d: %d messages are in flight already", what, c.rank, laneRoom)
	}
}

// deliver executes the messages of a lane until the group closes.
func (c *Comm) deliver(l chan *call) {
	for k := range l {
		err := c.fault()
		if err == nil {
			err = c.carry(k)
		}
		c.finish(k, err)
	}
}

// carry executes one message.
func (c *Comm) carry(k *call) error {
	ctx, cancel := c.patient(k.ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.life, func() { stop(c.fault()) })()
	m := k.in
	if k.route == byDevice {
		stage, err := npu.AllocHost(c.port, m.Bytes())
		if err != nil {
			return failed(c.rank, k.name(), err)
		}
		defer stage.Free()
		m = comm.Mem{Ptr: npu.Ptr{Buf: stage}, Elems: m.Elems, DType: m.DType}
	}
	if k.what.Kind == comm.Send && k.route == byDevice {
		if err := c.copies(ctx, func(s npu.Stream) error { return s.CopyOut(m.Host(), k.in.Ptr) }); err != nil {
			return failed(c.rank, k.name(), err)
		}
	}
	var h comm.Handle
	var err error
	if k.what.Kind == comm.Send {
		h, err = c.posts.Send(ctx, m, k.what.Root)
	} else {
		h, err = c.posts.Recv(ctx, m, k.what.Root)
	}
	if err == nil {
		err = h.Wait(ctx)
	}
	if differ := (*comm.MismatchError)(nil); errors.As(err, &differ) {
		return differ
	}
	if err != nil {
		if why := c.fault(); why != nil {
			return why
		}
		return renamed(c.rank, k.name(), err)
	}
	var apart bool
	k.transfer, k.waited, apart = h.Took()
	k.mingled = !apart
	if k.what.Kind == comm.Recv && k.route == byDevice {
		if err := c.copies(ctx, func(s npu.Stream) error { return s.CopyIn(k.in.Ptr, m.Host()) }); err != nil {
			return failed(c.rank, k.name(), err)
		}
	}
	return nil
}

// copies enqueues a copy and waits for it.
func (c *Comm) copies(ctx context.Context, enqueue func(npu.Stream) error) error {
	p := &c.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil {
		s, err := c.port.NewStream("messages")
		if err != nil {
			return err
		}
		p.stream = s
	}
	if err := enqueue(p.stream); err != nil {
		return err
	}
	return p.stream.Sync(ctx)
}

// close ends the stream, once no lane works any more.
func (p *pairs) close() error {
	if p.stream == nil {
		return nil
	}
	return p.stream.Close()
}
