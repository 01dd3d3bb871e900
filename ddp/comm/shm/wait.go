package shm

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [sleeping]
//
// A rank that must wait polls the flags briefly, then sleeps on a word of the shared header. The order of steps ensures that no
// wake-up is lost:
//
//	sleeper                         publisher
//	sleepers++                      store own flag
//	g = count                       (poll the others' flags briefly)
//	flags set? then do not sleep    fence
//	sleep while count == g          if sleepers > 0 and all flags are set:
//	                                   count++, wake all
//
// All accesses except the publisher's store are sequentially consistent atomics; the fence makes up for that store. If the publisher sees
// sleepers == 0, the sleeper's look at the flags comes later and sees the publisher's. If two ranks publish last at the same time, at least
// one of them sees all flags. Only the last to arrive wakes, so a round of w ranks costs one system call to wake and w-1 to sleep. Sleep is
// divided into slices; after each, the sleeper checks for trouble.

const (
	slice    = 50 * time.Millisecond  // longest sleep between checks for trouble
	liveness = 100 * time.Millisecond // between checks of the locks of missing ranks
	// Polling flags before sleeping. To sleep and to be woken takes 30 to 50 microseconds on a virtual machine. A rank that was woken begins its share that
	// much later, and its peers would then sleep in turn until it is done: so poll for longer than that.
	lookWait = 100 * time.Microsecond
	lookWork = 3 * time.Microsecond  // this processor has other work
	lookLast = 25 * time.Microsecond // the same, but the peers are at their shares of the call and about to finish
	yields   = 4                     // of the processor, if there are more ranks than processors
	// Calls longer than this take so long that one more context switch does not matter.
	yieldBytes = 128 << 10
)

// ring wakes all ranks that sleep on the bell.
func (b *bell) ring() {
	if atomic.LoadUint32(&b.sleepers) > 0 {
		atomic.AddUint32(&b.count, 1)
		wakeAll(&b.count)
	}
}

// ringAll wakes all ranks of the group.
func (c *Comm) ringAll() {
	c.v.hdr.bell.ring()
	for i := range c.size {
		for j := range c.size {
			if i != j {
				c.v.pair(i, j).bell.ring()
			}
		}
	}
}

// publish announces that this rank has reached the next round. All other fields of the line must be set. await must follow: it
// wakes the sleepers.
func (c *Comm) publish(l *line) { storeRelease(&l.round, c.round) }

// wakeSleepers is the second half of publish.
func (c *Comm) wakeSleepers() {
	c.fence()
	if b := &c.v.hdr.bell; atomic.LoadUint32(&b.sleepers) > 0 && c.reached() {
		atomic.AddUint32(&b.count, 1)
		wakeAll(&b.count)
	}
}

// reached reports whether all ranks are in this rank's round. No rank can be ahead: it would need this one.
func (c *Comm) reached() bool {
	for _, b := range c.v.block {
		if atomic.LoadUint64(&b.line[c.round&1].round) < c.round {
			return false
		}
	}
	return true
}

// missing returns the ranks that have not reached the round.
func (c *Comm) missing() (ranks []int) {
	for r, b := range c.v.block {
		if atomic.LoadUint64(&b.line[c.round&1].round) < c.round {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// await blocks until all ranks reached the round. ok is false if mode or ctx do not allow it to continue.
func (c *Comm) await(k *call, m mode, ctx context.Context) (ok bool, err error) {
	there := c.reached()
	for i := 0; i < c.looks && !there; i++ {
		pause()
		there = c.reached()
	}
	c.wakeSleepers()
	if there {
		return true, nil
	}
	k.stamp()
	ok, err = c.awaitLonger(k, m, ctx)
	if k.stage == published {
		k.arrived = time.Since(c.base)
	}
	return ok, err
}

func (c *Comm) awaitLonger(k *call, m mode, ctx context.Context) (ok bool, err error) {
	look := lookWork
	switch {
	case m == waiting:
		look = lookWait
	case k.stage != published:
		look = lookLast
	}
	if !c.crowded && lookFor(look, c.there) {
		return true, nil
	}
	if m == inline {
		return false, nil
	}
	if c.crowded && m == waiting && k.what.Elems*int64(k.what.DType.Size()) <= yieldBytes {
		for range yields { // a peer may be waiting for this very processor
			if yield(); c.reached() {
				return true, nil
			}
		}
	}
	now := time.Now()
	c.vigil.over(c.round, now)
	t := trouble{what: k.what, number: k.number, ctx: k.ctx, missing: c.missing, vigil: &c.vigil, checked: now}
	return c.sleep(&c.v.hdr.bell, c.there, ctx, &t)
}

// lookFor calls f again and again for about d.
func lookFor(d time.Duration, f func() bool) bool {
	for begin := time.Now(); ; {
		for range 64 {
			if f() {
				return true
			}
			pause()
		}
		if time.Since(begin) > d {
			return false
		}
	}
}

// sleep sleeps on the bell until f holds, ctx ends (false) or there is trouble.
func (c *Comm) sleep(b *bell, f func() bool, ctx context.Context, t *trouble) (ok bool, err error) {
	for {
		atomic.AddUint32(&b.sleepers, 1)
		g := atomic.LoadUint32(&b.count)
		timeout := false
		if !f() && !c.down.Load() {
			timeout = sleepOn(&b.count, g, t.nap())
		}
		atomic.AddUint32(&b.sleepers, ^uint32(0))
		if f() {
			if timeout {
				c.missed.Add(1)
			}
			return true, nil
		}
		if err := c.look(t); err != nil {
			if f() { // it arrived just before
				return true, nil
			}
			return false, c.breakWith(err)
		}
		if ctx != nil && ctx.Err() != nil {
			return false, nil
		}
	}
}

// trouble is what a sleeper checks for.
type trouble struct {
	what    comm.Call
	number  int64
	ctx     context.Context
	missing func() []int
	vigil   *vigil
	checked time.Time // last check of the locks
}

// nap returns how long to sleep.
func (t *trouble) nap() time.Duration {
	d := slice
	if at, ok := t.ctx.Deadline(); ok {
		d = min(d, max(time.Until(at), time.Microsecond)+time.Microsecond)
	}
	return d
}

// look returns an error if the wait cannot succeed.
func (c *Comm) look(t *trouble) error {
	if c.down.Load() {
		return c.fault(t.what, t.number)
	}
	name := func() string { return t.what.Number(t.number) }
	if err := c.abortError(name()); err != nil {
		return err
	}
	now := time.Now()
	for _, r := range t.missing() {
		if atomic.LoadUint32(&c.v.block[r].state) == left {
			return &comm.PeerError{Rank: r, Call: name(), Reason: "it closed its communicator"}
		}
	}
	if now.Sub(t.checked) >= liveness {
		t.checked = now
		for _, r := range t.missing() {
			if !held(c.files.control, r, 1) {
				return &comm.PeerError{Rank: r, Call: name(), Reason: fmt.Sprintf("its process (pid %d) ended", c.v.block[r].pid)}
			}
		}
	}
	if p := comm.Patience(t.ctx); p > 0 {
		if late := t.vigil.lifeless(c.life, t.missing(), p, now); late != nil {
			return c.timeout(name(), t, late, now)
		}
	}
	if t.ctx.Err() == nil {
		return nil
	}
	if t.ctx.Err() == context.DeadlineExceeded {
		return c.timeout(name(), t, t.missing(), now)
	}
	return fmt.Errorf("comm: rank %d: %s: %w", c.rank, name(), context.Cause(t.ctx))
}
