package tcp

import (
	"context"
	"runtime"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"golang.org/x/sys/unix"
)

// Note [driving]
//
// At most one goroutine drives at a time (Comm.driving, under mu), and only it touches the peers, the links and the active call: the caller that issues a
// call of up to a mebibyte on an idle group, for as long as that takes to hand its data to the kernel; a caller in Wait, until its call is complete; and
// the worker, until nothing is left to do.

const (
	slice     = 50 * time.Millisecond // longest sleep between two looks for trouble
	lookFor   = 50 * time.Microsecond // for data, before sleeping
	glanceAt  = 256                   // passes that moved something between two looks at the clock
	wasteSize = 64 << 10              // of memory for what is thrown away
)

// worker drives whenever there is work and no other driver.
func (c *Comm) worker() {
	runtime.LockOSThread() // it ends with the goroutine
	defer c.wg.Done()
	for range c.wake {
		c.mu.Lock()
		if c.driving || !c.busy() && !c.down.Load() {
			c.mu.Unlock()
			continue
		}
		c.driving = true
		c.mu.Unlock()
		c.drive(nil, nil)
	}
}

// busy reports whether there is something to drive. mu is held, and nobody drives.
func (c *Comm) busy() bool { return c.head != nil || c.fresh != nil || c.messages+c.owed > 0 }

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

// rouse wakes the driver if it sleeps. mu is held.
func (c *Comm) rouse() {
	if !c.closed && c.sleeping.Load() {
		ring(c.bell)
	}
}

// drive works until call last is over, nothing is left to do, or ctx ends. The caller has set driving; drive resets it.
func (c *Comm) drive(last *call, ctx context.Context) {
	c.looking = !c.crowded
	c.turns(last, ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.driving = false
	c.idle.Broadcast()
	if c.busy() && !c.down.Load() {
		c.kick()
	}
}

func (c *Comm) turns(last *call, ctx context.Context) {
	var idle time.Duration // since when nothing has moved
	yielded := false       // since something has moved
	for passes := 0; ; passes++ {
		if c.down.Load() {
			c.drain()
			return
		}
		c.collect()
		if c.active == nil && !c.beginNext() && c.messages+c.owed == 0 {
			return
		}
		moved, err := c.pass()
		if err == nil && c.active != nil && c.complete() {
			k := c.active
			c.endCall()
			if idle = 0; k == last {
				return
			}
			continue
		}
		switch {
		case err != nil:
		case moved:
			yielded = false
			if idle = 0; passes%glanceAt == 0 {
				err = c.glance()
			}
		case c.crowded && !yielded:
			yielded = true
			c.giveWay()
		default:
			now := time.Since(c.base)
			if idle == 0 {
				idle = now
			}
			if c.looking && now-idle < c.look {
				continue
			}
			idle = 0
			c.sleep()
			if err = c.glance(); err == nil && ctx != nil && ctx.Err() != nil {
				return
			}
		}
		if err != nil {
			c.breakWith(err)
		}
	}
}

// beginNext begins the first call in the queue.
func (c *Comm) beginNext() bool {
	c.mu.Lock()
	k := c.head
	c.mu.Unlock()
	if k == nil {
		return false
	}
	c.begin(k)
	return true
}

func (c *Comm) begin(k *call) {
	c.active, c.number, c.arrived = k, k.number, 0
	c.lay(k)
	c.watchOver(k)
	if c.size == 1 {
		c.arrive(k)
	}
}

// pass tries every connection once: to the ranks after this one, from the ranks before it, so that not all send to one at a time.
func (c *Comm) pass() (moved bool, err error) {
	for _, p := range c.ahead {
		for _, l := range p.lines {
			moved = c.push(l) || moved
		}
	}
	if c.dirty {
		moved = c.reduce() || moved
	}
	for _, p := range c.behind {
		for _, l := range p.lines {
			m, err := c.pull(l)
			if err != nil {
				return true, err
			}
			if moved = m || moved; c.dirty {
				c.reduce()
			}
		}
	}
	return moved, nil
}

// reduce adds what has come from all ranks, piece by piece.
func (c *Comm) reduce() (moved bool) {
	c.dirty = false
	a, k := &c.plan, c.active
	for k != nil && k.odd == nil && len(a.targets) > 0 {
		for _, r := range a.order {
			if p := c.peers[r]; p != nil && !p.full {
				return moved
			}
		}
		if a.inPlace {
			for _, p := range c.others {
				if !p.sent(a.sums) {
					return moved
				}
			}
		}
		t := a.targets[0]
		n := min(pieceBytes, t.n-a.done)
		src := c.srcs[:0]
		for _, r := range a.order {
			if p := c.peers[r]; p != nil {
				src = append(src, p.stage.pointer())
			} else {
				src = append(src, (t.own + address(a.done)).pointer())
			}
		}
		reduce.Many(k.what.Op, k.what.DType, n/k.what.DType.Size(), (t.dst + address(a.done)).pointer(), nil, src)
		clear(src)
		if a.done += n; a.done == t.n {
			a.done = 0
			a.targets = a.targets[:copy(a.targets, a.targets[1:])]
		}
		a.sums++
		for _, r := range a.order {
			if p := c.peers[r]; p != nil {
				p.full = false
				c.consumed(p)
			}
		}
		for _, p := range a.after {
			p.may++
		}
		moved = true
	}
	return moved
}

// complete reports whether the active call is over for this rank: it has all, and its own data are with the kernel. After a mismatch it is over when every
// peer will hear of it.
func (c *Comm) complete() bool {
	if c.active.odd == nil {
		return c.outLeft == 0 && c.inLeft == 0
	}
	for _, p := range c.others {
		for _, l := range p.lines {
			if l.pieces > 0 && !c.detach(l) {
				return false
			}
		}
		if p.outDone == 0 {
			return false
		}
	}
	return true
}

// endCall completes the active call.
func (c *Comm) endCall() {
	k := c.active
	c.active = nil
	for _, p := range c.others {
		for _, l := range p.lines {
			if l.begun && l.h.phase < phaseLane {
				l.dst = 0 // the rest of a piece of a call that failed
			}
		}
	}
	c.mu.Lock()
	if c.head = k.after; c.head == nil {
		c.tail = nil
	}
	k.after = nil
	c.mu.Unlock()
	if k.odd != nil {
		c.finish(k, k.odd)
		return
	}
	c.finish(k, nil)
}

// giveWay lets another rank have the processor. Where ranks share it, what this one waits for often comes from the next in line: when the turn comes back, it
// is there, and nobody had to be put to sleep and woken.
func (c *Comm) giveWay() {
	yieldProcessor()
	for _, p := range c.others {
		for _, l := range p.lines {
			l.dry, l.stuck = false, false // worth another call
		}
	}
}

// sleep waits for a connection that can move something, for a ring of the bell, or for a slice of time.
func (c *Comm) sleep() {
	fds := append(c.fds[:0], unix.PollFd{Fd: int32(c.bell), Events: unix.POLLIN})
	c.polled = c.polled[:0]
	for _, p := range c.others {
		for _, l := range p.lines {
			var ev int16
			if l.left > 0 && l.sendErr == 0 {
				ev |= unix.POLLOUT
			}
			if l.begun && l.rest > 0 || !l.known && c.wants(l) || l.known && !l.begun && l.index == 0 && p.lively() {
				ev |= unix.POLLIN
			}
			if ev != 0 {
				fds = append(fds, unix.PollFd{Fd: int32(l.fd), Events: ev})
				c.polled = append(c.polled, l)
			}
		}
	}
	c.fds = fds
	c.sleeping.Store(true)
	if c.down.Load() || c.posted.Load() > 0 {
		c.sleeping.Store(false)
		return
	}
	n := poll(fds, int(c.nap()/time.Millisecond))
	c.sleeping.Store(false)
	if n <= 0 {
		return
	}
	if fds[0].Revents != 0 {
		silence(c.bell)
	}
	for i, l := range c.polled {
		ev := fds[i+1].Revents
		if ev&^unix.POLLOUT != 0 {
			l.dry = false
		}
		if ev&^unix.POLLIN != 0 {
			l.stuck = false
		}
	}
}

// nap is how long to sleep.
func (c *Comm) nap() time.Duration {
	d := slice
	if k := c.active; k != nil {
		if at, ok := k.ctx.Deadline(); ok {
			d = min(d, max(time.Until(at), 0)+time.Millisecond)
		}
	}
	return d
}

// drain fails everything that is queued.
func (c *Comm) drain() {
	if c.active != nil {
		c.active = nil
	}
	c.mu.Lock()
	err, first, fresh := c.broken, c.head, c.fresh
	c.head, c.tail, c.fresh, c.freshLast = nil, nil, nil, nil
	c.mu.Unlock()
	c.posted.Store(0)
	for _, k := range [2]*call{first, fresh} {
		c.failAll(k, err)
	}
	for _, p := range c.others {
		for i := range p.lanes {
			c.failAll(p.lanes[i].first, err)
			p.lanes[i] = lane{}
		}
	}
	c.messages, c.owed = 0, 0
	c.mourn()
}

func (c *Comm) failAll(k *call, err error) {
	for k != nil {
		after := k.after
		k.after = nil
		c.finish(k, err)
		k = after
	}
}

// fault is the error of a call on a group that is down.
func (c *Comm) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

var _ comm.Handle = (*call)(nil)
