//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// event is an npu.Event: its latest record.
type event struct {
	dev *Device

	mu     sync.Mutex
	latest *record // nil until the first Record
	closed bool
}

var _ npu.Event = (*event)(nil)

// record is one Record of an event. Each has an event of CANN of its own, because a wait is for the Record that was the latest when it began, even if
// the event has been recorded again since.
type record struct {
	dev    *Device
	handle cann.Event // for the thread

	mu     sync.Mutex
	refs   int // who may still ask: the event, commands, waits
	issued bool
	over   bool          // reached, or it never will be
	err    error         // of the stream that reached it
	at     time.Duration // since the device was opened
	done   chan struct{} // closed when over; made by the first waiter
}

// NewEvent returns an event that counts as reached until it is recorded.
func (d *Device) NewEvent() (npu.Event, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	return &event{dev: d}, nil
}

// next makes the record of a new Record, with a reference for the command.
func (e *event) next() *record {
	r := &record{dev: e.dev, refs: 2}
	e.mu.Lock()
	old := e.latest
	e.latest = r
	e.mu.Unlock()
	if old != nil {
		old.release()
	}
	return r
}

// current takes a reference to the latest record; nil if there is none.
func (e *event) current() *record {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.latest != nil {
		e.latest.mu.Lock()
		e.latest.refs++
		e.latest.mu.Unlock()
	}
	return e.latest
}

// release gives up a reference. The last one gives the event of CANN back.
func (r *record) release() {
	r.mu.Lock()
	r.refs--
	last := r.refs == 0
	r.mu.Unlock()
	if last {
		r.dev.thread.retire(r.handle)
	}
}

// state reports whether the record is issued and over, and its error.
func (r *record) state() (issued, over bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.issued, r.over, r.err
}

// finish marks the record as over.
func (r *record) finish(err error, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.issued, r.over, r.at = true, true, at
	if r.err == nil {
		r.err = err
	}
	if r.done != nil {
		close(r.done)
	}
}

// poll asks CANN whether the record has been reached, and returns the error that CANN reports. It runs on the thread.
func (r *record) poll() (bool, error) {
	issued, over, _ := r.state()
	if over || !issued {
		return over, nil
	}
	t := r.dev.thread
	reached, err := t.lib.Reached(r.handle)
	if err == nil && !reached {
		return false, nil
	}
	var at time.Duration
	if err == nil {
		at, err = t.at(r.handle)
	}
	if err != nil {
		err, at = fmt.Errorf("%s: wait for an event: %w", t.name, t.late(err)), time.Since(t.opened)
	}
	r.finish(err, at)
	return true, err
}

// Done reports whether the latest Record has been reached.
func (e *event) Done() bool {
	r := e.current()
	if r == nil {
		return true
	}
	defer r.release()
	if _, over, _ := r.state(); over {
		return true
	}
	t := e.dev.thread
	ctx, cancel := context.WithTimeoutCause(context.Background(), t.patience, errStuck)
	defer cancel()
	over := make(chan bool, 1)
	err := t.do(ctx, func() error {
		reached, err := r.poll()
		over <- reached
		return err
	})
	switch {
	case errors.Is(err, errStuck):
		return false
	case err != nil:
		return true // a lost device reaches nothing any more
	}
	return <-over
}

// Sync waits for the latest Record.
func (e *event) Sync(ctx context.Context) error {
	r := e.current()
	if r == nil {
		return nil
	}
	defer r.release()
	return r.wait(ctx)
}

// wait waits until the record is over and returns the error of its stream at that point.
func (r *record) wait(ctx context.Context) error {
	r.mu.Lock()
	if r.over {
		defer r.mu.Unlock()
		return r.err
	}
	watch := r.done == nil
	if watch {
		r.done = make(chan struct{})
		r.refs++
	}
	done := r.done
	r.mu.Unlock()
	t := r.dev.thread
	if watch {
		// Also on a dead device, which cuts its waits, and if this caller does not wait any more: other waiters rely on the watch.
		err := t.hand(ctx, func() error {
			t.waits = append(t.waits, wait{
				poll: func() (bool, error) {
					over, err := r.poll()
					if over {
						r.release()
					}
					return over, err
				},
				cut: func(err error) { r.finish(err, time.Since(t.opened)); r.release() },
			})
			return nil
		}, true)
		switch {
		case errors.Is(err, errClosed): // nobody will watch
			r.finish(err, time.Since(t.opened))
			r.release()
		case errors.Is(err, errStuck):
			return err // the watch begins when the thread comes back, if it does
		}
	}
	select {
	case <-done:
		_, _, err := r.state()
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: wait for event: %w", t.name, context.Cause(ctx))
	}
}

// At is the time since the device was opened at which the latest Record was reached.
func (e *event) At() time.Duration {
	r := e.current()
	if r == nil {
		return 0
	}
	defer r.release()
	_ = r.wait(context.Background()) // At is for events that have been reached
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// Close gives the event up; idempotent.
func (e *event) Close() error {
	e.mu.Lock()
	r := e.latest
	e.latest, e.closed = nil, true
	e.mu.Unlock()
	if r != nil {
		r.release()
	}
	return nil
}
