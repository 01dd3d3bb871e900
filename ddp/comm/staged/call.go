package staged

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// call is a collective in progress, and its handle.
type call struct {
	c       *Comm
	what    comm.Call
	out, in comm.Mem // page-locked
	ctx     context.Context
	event   npu.Event
	unsent  error // why it is not on the stream, or not all of it

	mu       sync.Mutex
	begun    bool  // exchange was called
	failed   error // of exchange
	transfer time.Duration
	waited   time.Duration
	apart    bool

	over chan struct{} // closed when err is known
	err  error
	done chan struct{} // closed when the device does not touch the memory any more
	once sync.Once
}

var _ comm.OnDevice = (*call)(nil)

// exchange is the host's part, on the stream's thread. Its error fails the stream, so that no later work uses the memory; after a mismatch the group
// goes on, and the stream must too.
func (k *call) exchange() error {
	k.mu.Lock()
	k.begun = true
	k.mu.Unlock()
	err := k.c.fault()
	var h comm.Handle
	if err == nil {
		h, err = comm.Do(k.ctx, k.c.host, k.what, k.out, k.in)
	}
	if err == nil {
		err = h.Wait(k.ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
	if err == nil {
		k.transfer, k.waited, k.apart = h.Took()
	}
	if m := (*comm.MismatchError)(nil); errors.As(err, &m) {
		return nil
	}
	return err
}

const (
	look  = 100 * time.Millisecond // between looks at the group while the device works
	grace = 2 * time.Second        // for an error that says more than that time is over
)

// reached waits until the device has reached the call's event, the group is broken before this rank's part has begun, or time is over.
func (k *call) reached() error {
	var late time.Time // since when there is no reason to wait
	for {
		there, err := k.lookFor(look)
		if there {
			return err
		}
		begun, _ := k.progress() // its error will come with the event
		switch {
		case k.c.ctx.Err() != nil:
			return comm.ErrClosed
		case !begun:
			if err := k.c.Check(); err != nil {
				return fmt.Errorf("comm: %v on rank %d, which waits for its device: %w", k.what, k.c.Rank(), err)
			}
		}
		if k.ctx.Err() == nil {
			continue
		}
		if late.IsZero() {
			late = time.Now()
		}
		if time.Since(late) > grace {
			return fmt.Errorf("comm: %v on rank %d: the device has not come to it: %w", k.what, k.c.Rank(), context.Cause(k.ctx))
		}
	}
}

// lookFor waits for the event for some time, and returns whether it was reached, with the error of its stream.
func (k *call) lookFor(d time.Duration) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err = k.event.Sync(ctx)
	if err == nil || ctx.Err() == nil {
		return true, err
	}
	if !k.event.Done() {
		return false, nil
	}
	return true, k.event.Sync(context.Background()) // it was reached at the last moment
}

// progress tells whether exchange was called, and the error that it returned.
func (k *call) progress() (begun bool, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun, k.failed
}

// blame prefers the error of the call's own exchange, then what broke the group before, to that of the stream.
func (k *call) blame(err error) error {
	if _, own := k.progress(); own != nil {
		return own
	}
	if first := k.c.fault(); first != nil {
		return first
	}
	return fmt.Errorf("comm: %v on rank %d: %w", k.what, k.c.Rank(), err)
}

// settle makes the result known.
func (k *call) settle(err error) {
	if err == nil {
		_, err = k.progress() // a mismatch
	}
	if k.err = err; err == nil {
		k.c.count(k)
	}
	close(k.over)
}

// count adds a finished call to the counters.
func (c *Comm) count(k *call) {
	host := c.host.Stats().Wire
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Add(max(k.in.Bytes(), k.out.Bytes()), 0, k.transfer, k.waited, k.apart)
	c.stats.Wire = host
}

// Event is reached when the memory holds the result.
func (k *call) Event() npu.Event { return k.event }

// Done is closed on completion. After an error this may be later than Wait: when the device does not touch the memory any more.
func (k *call) Done() <-chan struct{} { return k.done }

// Took returns the time spent moving data between hosts, and the time spent waiting for the last rank, as the host's transport tells them.
func (k *call) Took() (transfer, waited time.Duration, apart bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.transfer, k.waited, k.apart
}

// Wait blocks until completion or until ctx ends.
func (k *call) Wait(ctx context.Context) error {
	select {
	case <-k.over:
	case <-ctx.Done():
		if k.ctx.Err() == nil {
			return fmt.Errorf("comm: waiting for %v: %w", k.what, context.Cause(ctx))
		}
		<-k.over // the call's own time is over too: reached ends it, with an error that says more
	}
	if k.err == nil {
		<-k.done
		k.once.Do(func() { k.c.recycle(k.event) })
	}
	return k.err
}

// event returns an event that no call uses.
func (c *Comm) event() (npu.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		ev := c.free[n-1]
		c.free = c.free[:n-1]
		return ev, nil
	}
	ev, err := c.dev.NewEvent()
	if err != nil {
		return nil, fmt.Errorf("comm: staged: %w", err)
	}
	c.events = append(c.events, ev)
	return ev, nil
}

func (c *Comm) recycle(ev npu.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, ev)
}
