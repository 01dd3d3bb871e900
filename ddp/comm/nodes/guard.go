package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [guard]
//
// The groups' calls have no deadline, because a rank cannot tell by them who is late: the ranks of a node wait for one of their own that waits
// for another node. The guard of each rank looks 20 times a second at the first call in the queue: whether its context is over, and whether
// one of the ranks that have not made this call has shown no sign of life for the call's patience. Which ranks those are it knows from the greeting
// and, more closely, from what the control says of each rank: how many calls it has issued. A rank that broke the groups tells all others; so
// whoever waits in a group is released.

const (
	look = 50 * time.Millisecond
	// stalled is how long a rank's heartbeats must have stopped before it counts as fallen silent in a call that it began.
	stalled = 2 * time.Second
	// standstill is the pause between two looks above which this process itself did not run: it was suspended (Ctrl-Z), usually with the other ranks.
	standstill = time.Second
)

// vigil watches the ranks that one call waits for.
type vigil struct {
	k      *call
	begun  time.Time
	looked time.Time
	seen   []pulse // by rank
}

type pulse struct {
	beats uint64
	at    time.Time // of the last new beat
}

func (c *Comm) guard() {
	defer c.wg.Done()
	tick := time.NewTicker(look)
	defer tick.Stop()
	down := c.control.Down()
	var v vigil
	for {
		select {
		case <-c.quit:
			return
		case <-down:
			down = nil
			if err := c.verdictOf(c.current()); err != nil {
				c.fail(err, false)
			}
		case <-tick.C:
			c.mu.Lock()
			var k *call
			if len(c.queue) > 0 && c.broken == nil {
				k = c.queue[0]
			}
			c.mu.Unlock()
			if k == nil {
				v.k = nil
				continue
			}
			if err := c.watch(&v, k, time.Now()); err != nil && !c.isOver(k) {
				c.fail(err, true)
			}
		}
	}
}

// isOver reports whether a call has ended, so that its context may end too. A call that ends after this look did not end in time.
func (c *Comm) isOver(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.end.Over()
}

// current names the first call in the queue.
func (c *Comm) current() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return "between calls"
	}
	return c.queue[0].name()
}

// watch returns an error if a call must not wait longer.
func (c *Comm) watch(v *vigil, k *call, now time.Time) error {
	if v.k != k {
		*v = vigil{k: k, begun: now, looked: now, seen: make([]pulse, c.size())}
		for r := range v.seen {
			v.seen[r] = pulse{c.control.Life(r).Beats, now}
		}
	}
	if pause := now.Sub(v.looked); pause > standstill { // the pause is not silence of the peers
		for r := range v.seen {
			v.seen[r].at = v.seen[r].at.Add(pause)
		}
	}
	v.looked = now
	missing := c.missing(k)
	if p := comm.Patience(k.ctx); p > 0 {
		var quiet []int
		for _, r := range missing {
			if n := c.control.Life(r).Beats; n != v.seen[r].beats {
				v.seen[r] = pulse{n, now}
			}
			if now.Sub(v.seen[r].at) >= p {
				quiet = append(quiet, r)
			}
		}
		if quiet != nil {
			return c.timeout(v, quiet, now)
		}
	}
	switch k.ctx.Err() {
	case nil:
		return nil
	case context.DeadlineExceeded:
		return c.timeout(v, missing, now)
	}
	return fmt.Errorf("comm: rank %d: %s: %w", c.rank, k.name(), context.Cause(k.ctx))
}

// missing returns the ranks that have not made a call, as far as is known: those that the greeting has not heard and that have issued fewer calls.
func (c *Comm) missing(k *call) (ranks []int) {
	if c.side.group != nil {
		return c.late(k)
	}
	heard := k.heard.Load()
	counted := c.trunk == nil || c.first
	for r := range c.size() {
		switch {
		case r == c.rank, heard == everybody, heard == node && c.nodeOf[r] == c.node():
			continue
		case counted && !behind(c.control.Life(r).Calls, c.trunk != nil, k.number):
			continue
		case !counted && heard == nobody && c.nodeOf[r] != c.node():
			continue // it may have come; who is missing on this node is not known either
		}
		ranks = append(ranks, r)
	}
	if !counted && len(ranks) > 1 {
		return nil // one of them, and no guess which
	}
	return ranks
}

// timeout returns the error of a call whose time is over.
func (c *Comm) timeout(v *vigil, late []int, now time.Time) error {
	e := &comm.TimeoutError{Call: v.k.name(), After: c.now() - v.k.issued, Missing: late}
	for _, r := range late {
		if at := c.control.Life(r).Work; at != "" {
			e.Work = fmt.Sprintf("rank %d was at long work: %s; last sign of life %v ago", r, at, now.Sub(v.seen[r].at).Round(time.Millisecond))
			break
		}
	}
	if len(late) > 0 {
		return e
	}
	for r := range c.size() {
		if l := c.control.Life(r); r != c.rank && l.Silent > stalled {
			e.Stalled = append(e.Stalled, r)
			e.Silent = max(e.Silent, l.Silent)
		}
	}
	return e
}
