package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Abort breaks the group with a reason of this rank.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	if p := (*comm.PeerError)(nil); errors.As(reason, &p) && p.Rank >= 0 { // not this rank is the cause
		c.announce(p.Rank, p.Reason)
	} else {
		c.announce(c.rank, reason.Error())
	}
	c.setBroken(fmt.Errorf("comm: rank %d aborted: %w", c.rank, reason))
	c.rouse()
}

// rouse wakes every rank and this rank's worker, so that they notice the abort.
func (c *Comm) rouse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed { // otherwise Close has woken them, and the bells may be unmapped
		c.ringAll()
		c.kick()
	}
}

// breakWith breaks the group with an error found while waiting, tells the peers, and returns the first error.
func (c *Comm) breakWith(err error) error {
	var p *comm.PeerError
	if errors.As(err, &p) {
		c.announce(p.Rank, p.Reason)
	} else {
		c.announce(c.rank, err.Error())
	}
	err = c.setBroken(err)
	c.rouse()
	return err
}

// setBroken keeps the first error.
func (c *Comm) setBroken(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
	c.down.Store(true)
	return c.broken
}

// announce publishes the reason to the peers; only the first counts.
func (c *Comm) announce(rank int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.v.hdr
	if c.closed || !atomic.CompareAndSwapUint32(&h.aborted, 0, 1) {
		return
	}
	h.abort.rank = int32(rank)
	h.abort.n = uint32(copy(h.abort.text[:], reason))
	atomic.StoreUint32(&h.aborted, 2)
}

// abortError returns the announcement of a peer as an error.
func (c *Comm) abortError(call string) error {
	h := c.v.hdr
	if atomic.LoadUint32(&h.aborted) == 0 {
		return nil
	}
	for end := time.Now().Add(liveness); atomic.LoadUint32(&h.aborted) == 1 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // it is being written; if the writer died, omit the reason
	}
	reason := "it aborted"
	rank := -1
	if atomic.LoadUint32(&h.aborted) == 2 {
		rank, reason = int(h.abort.rank), string(h.abort.text[:min(h.abort.n, reasonSize)])
	}
	return &comm.PeerError{Rank: rank, Call: call, Reason: reason}
}

// fault returns the error of a call on a group that is down.
func (c *Comm) fault(comm.Call, int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}
