package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Rank is this rank's number in the job, or in the group of one level.
func (c *Comm) Rank() int {
	if c.side.group != nil {
		return c.side.group.Rank()
	}
	return c.rank
}

// Size is the number of ranks of the job, or of the group of one level.
func (c *Comm) Size() int {
	if c.side.group != nil {
		return c.side.group.Size()
	}
	return c.size()
}

// Transport names the groups: "shm+tcp".
func (c *Comm) Transport() string {
	if c.side.group != nil {
		return c.side.group.Transport()
	}
	out := c.outer
	if out == nil {
		out = c.flat
	}
	if out == nil {
		return "nodes"
	}
	return c.inner.Transport() + "+" + out.Transport()
}

// Fold names the ranks of each node, in the order in which they are summed. Where each node has one rank, and in the order of ranks, that is their order.
func (c *Comm) Fold() string {
	if c.side.group != nil {
		return comm.Fold(c.side.group)
	}
	inOrder := true
	var list []string
	for n, ranks := range c.ranks {
		inOrder = inOrder && (c.nodes() == 1 || len(ranks) == 1 && ranks[0] == n)
		list = append(list, strings.Trim(fmt.Sprint(ranks), "[]"))
	}
	if inOrder {
		return comm.InRankOrder
	}
	return "node by node: ranks " + strings.Join(list, " | ")
}

// Nodes returns the node of every rank, nothing for a group of one level.
func (c *Comm) Nodes() []int {
	if c.side.group != nil {
		return nil
	}
	return append([]int(nil), c.nodeOf...)
}

// Alloc returns memory of the inner group: the ranks of this node can access it. A group of a chain returns that of its level, which lasts as long as the
// communicator that made the chain.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("comm: nodes: alloc of %d bytes", bytes)
	}
	if err := c.fault(); err != nil {
		return nil, err
	}
	switch {
	case c.side.group == nil:
		return c.inner.Alloc(bytes)
	case c.side.level == inwards:
		return c.root().inner.Alloc(bytes)
	}
	return c.root().outer.Alloc(bytes)
}

// issue queues a collective, or passes a message on.
func (c *Comm) issue(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
	if err := what.Check(c.Rank(), c.Size(), out, in); err != nil {
		return nil, err
	}
	if out.Elems > 0 && out.Ptr.Buf.Host() == nil || in.Elems > 0 && in.Ptr.Buf.Host() == nil {
		return nil, fmt.Errorf("comm: %v on rank %d: the host cannot access this memory (freed, or device memory)", what, c.rank)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("comm: %v on rank %d: not started: %w", what, c.rank, context.Cause(ctx))
	}
	if what.Kind == comm.Send || what.Kind == comm.Recv {
		if c.side.group != nil {
			return nil, fmt.Errorf("comm: %v on rank %d: a group of one level exchanges no messages", what, c.rank)
		}
		return c.message(ctx, what, in)
	}
	return c.enqueue(&call{c: c, what: what, out: out, in: in, ctx: ctx})
}

// enqueue gives a call its number and its place.
func (c *Comm) enqueue(k *call) (comm.Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	c.calls++
	k.number, k.issued = c.calls, c.now()
	c.root().progress(c.trunk != nil, c.first, k.number)
	c.queue = append(c.queue, k)
	c.kick()
	return k, nil
}

// root is the group from which this one was made, or itself.
func (c *Comm) root() *Comm {
	if c.trunk != nil {
		return c.trunk
	}
	return c
}

// progress tells the other ranks how many calls a group has issued.
func (c *Comm) progress(branch, first bool, calls int64) {
	if branch && !first {
		return
	}
	c.tallyMu.Lock()
	defer c.tallyMu.Unlock()
	c.tally = withTally(c.tally, branch, calls)
	c.control.Progress(c.tally)
}

// levels is what this rank wrote in the groups together.
func (c *Comm) levels() (wire int64) {
	for _, g := range []comm.Communicator{c.inner, c.outer, c.flat} {
		if g != nil {
			wire += g.Stats().Wire
		}
	}
	return wire
}

// Stats counts finished calls. Wire counts what this rank wrote for others to read, inside its node and to other nodes.
func (c *Comm) Stats() comm.Stats {
	wire := c.levels() - c.wireBefore
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Wire = wire
	return s
}

// Work reports long work to all ranks.
func (c *Comm) Work(what string) comm.Work {
	if c.trunk != nil {
		return c.trunk.Work(what)
	}
	w := &work{inner: c.inner.Work(what)} // for messages between ranks of this node
	w.beat, w.end = c.control.Work(what)
	return w
}

type work struct {
	inner     comm.Work
	beat, end func()
}

// Beat reports progress.
func (w *work) Beat() {
	w.inner.Beat()
	w.beat()
}

// End reports the end.
func (w *work) End() {
	w.inner.End()
	w.end()
}

// Close leaves the groups: pending calls fail with comm.ErrClosed, and memory from Alloc is gone. The control stays open. Idempotent.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	if c.broken == nil {
		c.broken = comm.ErrClosed
	}
	c.down.Store(true)
	close(c.wake)
	close(c.quit)
	c.mu.Unlock()

	c.cancel() // the driver stops waiting, and leaves what is under way to the groups
	c.wg.Wait()
	c.mu.Lock()
	for c.driving { // a caller in Wait
		c.idle.Wait()
	}
	c.mu.Unlock()
	var errs []error
	for _, g := range []comm.Communicator{c.flat, c.outer, c.inner} {
		if g != nil {
			errs = append(errs, g.Close())
		}
	}
	c.slab.pin.Unpin()
	for i := range c.scratch {
		c.scratch[i].unpin()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.queue {
		k.finish(c.broken)
	}
	c.queue = nil
	return errors.Join(errs...)
}
