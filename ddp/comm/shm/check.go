package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/gotrain/gotrain/ddp/comm"
)

var _ comm.Watcher = (*Comm)(nil)

// Check returns the error that broke the group, or the first that a call would meet: an abort, or the end of a peer's process. The latter breaks the group.
func (c *Comm) Check() error {
	if err := c.brokenError(); err != nil {
		return err
	}
	c.watch.RLock() // Close unmaps what is read here
	err := c.ended()
	c.watch.RUnlock()
	if err == nil {
		return nil
	}
	return c.breakWith(err)
}

// ended looks at the group's header and at the locks of the peers' processes.
func (c *Comm) ended() error {
	if c.gone {
		return nil
	}
	if err := c.abortError("watching the group"); err != nil {
		return err
	}
	for r, b := range c.v.block {
		// In this order: a rank that closes says so before it gives up its lock.
		if r != c.rank && !held(c.files.control, r, 1) && atomic.LoadUint32(&b.state) != left {
			return &comm.PeerError{Rank: r, Call: "watching the group", Reason: fmt.Sprintf("its process (pid %d) ended", b.pid)}
		}
	}
	return nil
}
