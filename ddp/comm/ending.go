package comm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Ending is how a call in progress ends: whether it is over, with which error, and the channel of those who wait for it. Transports keep one in each of their
// calls. Its methods need the lock under which the transport finishes calls.
type Ending struct {
	over bool
	err  error
	done chan struct{} // made when somebody waits
}

// Over reports whether the call has ended.
func (e *Ending) Over() bool { return e.over }

// Err is the error with which the call ended.
func (e *Ending) Err() error { return e.err }

// Finish ends the call and wakes those who wait. It reports whether the call was still in progress; a second end changes nothing.
func (e *Ending) Finish(err error) bool {
	if e.over {
		return false
	}
	e.over, e.err = true, err
	if e.done != nil {
		close(e.done)
	}
	return true
}

// Done is a channel that is closed at the end.
func (e *Ending) Done() <-chan struct{} {
	if e.over {
		return closed
	}
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}

// lateness is how long a wait whose time is over stays for the error of the call itself. Transports look for trouble several times in that time.
const lateness = time.Second

// Wait blocks until the end or until ctx ends; in the latter case the call continues. mu is the held lock; Wait unlocks it. own is the context of the call:
// if it ends no later than ctx, the call is about to fail with an error that says more, so Wait stays a moment for that. name is the call, for a message.
func (e *Ending) Wait(mu sync.Locker, ctx, own context.Context, name func() string) error {
	if e.over {
		defer mu.Unlock()
		return e.err
	}
	done := e.Done()
	mu.Unlock()
	select {
	case <-done:
		return e.err
	case <-ctx.Done():
	}
	if endsWith(own, ctx) {
		select {
		case <-done:
			return e.err
		case <-time.After(lateness):
		}
	}
	return fmt.Errorf("comm: waiting for %s: %w", name(), context.Cause(ctx))
}

// endsWith reports whether own has ended, or has a deadline that is not after that of ctx.
func endsWith(own, ctx context.Context) bool {
	if own.Err() != nil {
		return true
	}
	mine, ok := own.Deadline()
	limit, limited := ctx.Deadline()
	return ok && limited && !mine.After(limit)
}
