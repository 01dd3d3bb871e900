package tcp

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// call is a collective or a message in progress, and its Handle.
type call struct {
	c       *Comm
	what    comm.Call
	key     uint64
	out, in comm.Mem
	ctx     context.Context
	number  int64
	issued  time.Duration // by the clock of the Comm
	since   time.Duration // the driver waits for it
	arrived time.Duration // all ranks were there
	ended   time.Duration
	met     bool
	pin     runtime.Pinner
	pinned  bool
	after   *call               // in the queue, or in the lane
	odd     *comm.MismatchError // what makes the call fail once every peer has heard of it

	end comm.Ending // under Comm.mu
}

// own reports whether memory came from Alloc of this transport: it lies outside the Go heap.
func own(m comm.Mem) bool {
	_, ok := m.Ptr.Buf.(*buffer)
	return ok
}

// hold pins memory of the Go heap for the time of the call.
func (k *call) hold() {
	for _, m := range [2]comm.Mem{k.in, k.out} {
		if m.Elems > 0 && !own(m) {
			k.pin.Pin(&m.Host()[0])
			k.pinned = true
		}
		if k.in.Ptr == k.out.Ptr {
			return
		}
	}
}

// issue queues a call and does as much of it at once as is possible without waiting.
func (c *Comm) issue(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
	if err := c.check(ctx, what, out, in); err != nil {
		return nil, err
	}
	k := &call{c: c, what: what, key: what.Key(), out: out, in: in, ctx: ctx}
	message := what.Kind == comm.Send || what.Kind == comm.Recv
	c.mu.Lock()
	if c.broken != nil {
		defer c.mu.Unlock()
		return nil, c.broken
	}
	k.hold()
	k.issued = time.Since(c.base)
	if message {
		c.post(k)
		c.mu.Unlock()
		return k, nil
	}
	k.number = c.calls
	c.calls++
	if c.reports {
		c.control.Progress(c.calls - 1)
	}
	first := c.head == nil
	if first {
		c.head = k
	} else {
		c.tail.after = k
	}
	c.tail = k
	switch {
	case c.driving:
	case !first || in.Bytes() > inlineBytes || out.Bytes() > inlineBytes:
		c.kick()
	default:
		c.driving = true
		c.mu.Unlock()
		sent := c.start(k)
		c.mu.Lock()
		c.driving = false
		c.idle.Broadcast()
		if !sent && !c.habit(k) || c.head != k || c.messages+c.owed > 0 || c.down.Load() {
			c.kick()
		}
	}
	c.mu.Unlock()
	return k, nil
}

// post queues a message for the driver. mu is held.
func (c *Comm) post(k *call) {
	if c.fresh == nil {
		c.fresh = k
	} else {
		c.freshLast.after = k
	}
	c.freshLast = k
	c.posted.Add(1)
	c.kick()
	c.rouse()
}

// start begins a call on an idle group, and sends what can be sent. It reports whether the peers need nothing more of this rank.
func (c *Comm) start(k *call) bool {
	c.begin(k)
	c.looking = false
	for _, p := range c.ahead {
		for _, l := range p.lines {
			c.push(l)
		}
	}
	return c.outLeft == 0
}

// check refuses invalid calls.
func (c *Comm) check(ctx context.Context, what comm.Call, out, in comm.Mem) error {
	if err := what.Check(c.rank, c.size, out, in); err != nil {
		return err
	}
	if out.Elems > 0 && out.Ptr.Buf.Host() == nil || in.Elems > 0 && in.Ptr.Buf.Host() == nil {
		return fmt.Errorf("comm: %v on rank %d: the host cannot access this memory (freed, or device memory)", what, c.rank)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("comm: %v on rank %d: not started: %w", what, c.rank, context.Cause(ctx))
	}
	return nil
}

// Note [habit]
//
// A caller that issues a collective and waits for it at once drives it itself; waking the worker for it would cost as much as a small collective takes.
// A caller that computes meanwhile needs the worker. Which of the two it is shows only when it waits, or does not. So the group remembers, by the
// magnitude of a call, how often the caller came at once. After two such calls the worker is not woken any more; a caller that is late once ends that,
// and only that one call went without overlap.

const (
	inlineBytes = 1 << 20 // a longer call always wakes the worker
	atOnce      = 50 * time.Microsecond
	trusted     = 2
)

// habit reports whether the caller will probably drive a call of this size itself. mu is held.
func (c *Comm) habit(k *call) bool { return c.habits[magnitude(k)] >= trusted }

func magnitude(k *call) int {
	n := 0
	for b := max(k.in.Bytes(), k.out.Bytes()); b > 0; b >>= 1 {
		n++
	}
	return n
}

// learn notes that the caller has come to wait for a call. mu is held.
func (c *Comm) learn(k *call) {
	h := &c.habits[magnitude(k)]
	if time.Since(c.base)-k.issued > atOnce {
		*h = 0
	} else if *h < trusted {
		*h++
	}
}

// Wait blocks until completion or until ctx ends; in the latter case the call continues.
func (k *call) Wait(ctx context.Context) error {
	c := k.c
	c.mu.Lock()
	if !k.end.Over() && k == c.head {
		c.learn(k)
	}
	for !k.message() && !k.end.Over() && !c.driving && ctx.Err() == nil {
		c.driving = true
		c.mu.Unlock()
		c.drive(k, ctx)
		c.mu.Lock()
	}
	return k.end.Wait(&c.mu, ctx, k.ctx, k.name)
}

func (k *call) name() string { return k.what.Number(k.number) }

func (k *call) message() bool { return k.what.Kind == comm.Send || k.what.Kind == comm.Recv }

// Done is closed on completion. Calling it wakes the worker.
func (k *call) Done() <-chan struct{} {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if !k.end.Over() {
		k.c.kick()
	}
	return k.end.Done()
}

// Took returns the time spent moving data and the time spent waiting for the last rank; every rank hears from all, so they are apart.
func (k *call) Took() (transfer, waited time.Duration, apart bool) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	transfer, waited = k.took()
	return transfer, waited, true
}

func (k *call) took() (transfer, waited time.Duration) {
	if !k.met {
		return 0, k.ended - k.issued
	}
	return k.ended - k.arrived, k.arrived - k.issued
}

// arrive notes that the last rank has come.
func (c *Comm) arrive(k *call) { k.arrived, k.met = time.Since(c.base), true }

// finish completes a call.
func (c *Comm) finish(k *call, err error) {
	now := time.Since(c.base)
	if k.pinned {
		k.pin.Unpin()
		k.pinned = false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.end.Finish(err) {
		return
	}
	k.ended = now
	if err == nil {
		transfer, waited := k.took()
		c.stats.Add(max(k.in.Bytes(), k.out.Bytes()), 0, transfer, waited, true)
	}
}
