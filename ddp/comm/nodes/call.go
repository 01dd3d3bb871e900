package nodes

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// call is a collective in progress, and its Handle.
type call struct {
	c       *Comm
	what    comm.Call
	out, in comm.Mem
	ctx     context.Context
	number  int64
	do      func(*call) error // Branch: what to do once all ranks are here
	issued  time.Duration     // by the clock of the Comm
	arrived time.Duration     // all ranks were there
	mingled bool              // arrived is not known
	ended   time.Duration
	heard   atomic.Int32 // of whom this rank knows that they made the call

	end comm.Ending // under Comm.mu
}

// Whom a rank has heard in a greeting.
const (
	nobody int32 = iota
	node         // the ranks of its node
	everybody
)

func (c *Comm) now() time.Duration { return time.Since(c.base) }

// name is the call with its number, for messages.
func (k *call) name() string {
	return headOf(k.what, k.number, k.c.rank).String()
}

// finish marks the call complete. Comm.mu is held.
func (k *call) finish(err error) {
	if !k.end.Finish(err) {
		return
	}
	k.ended = k.c.now()
	if err == nil && k.do == nil {
		transfer, waited, apart := k.took()
		k.c.stats.Add(max(k.in.Bytes(), k.out.Bytes()), 0, transfer, waited, apart)
	}
}

func (k *call) took() (transfer, waited time.Duration, apart bool) {
	switch {
	case k.heard.Load() != everybody:
		return 0, k.ended - k.issued, true
	case k.mingled:
		return k.ended - k.issued, 0, false
	}
	return k.ended - k.arrived, k.arrived - k.issued, true
}

// met notes when all ranks were there: when the transfer of a group's call began, which has just ended.
func (k *call) met(h comm.Handle) {
	transfer, _, apart := h.Took()
	k.arrived, k.mingled = max(k.issued, k.c.now()-transfer), !apart
}

// Took returns the time spent moving data, and the time spent waiting for the last rank.
func (k *call) Took() (transfer, waited time.Duration, apart bool) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.took()
}

// Done is closed on completion.
func (k *call) Done() <-chan struct{} {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.end.Done()
}

// Wait blocks until completion or until ctx ends; in the latter case the call continues. If nobody has begun with the call, Wait executes it.
func (k *call) Wait(ctx context.Context) error {
	c := k.c
	c.mu.Lock()
	// The call ends when its own context does, so a caller that waits with another one must not be inside of it.
	if !k.end.Over() && !c.driving && !c.down.Load() && ctx == k.ctx && len(c.queue) > 0 && c.queue[0] == k {
		c.driving = true
		c.mu.Unlock()
		c.drive(k)
		c.mu.Lock()
	}
	return k.end.Wait(&c.mu, ctx, k.ctx, k.name)
}
