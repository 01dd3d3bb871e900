package queue

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Event counts its Records: want have been enqueued, and the one numbered got is the latest one reached. It counts as reached until it is recorded.
type Event struct {
	family string
	opened time.Time // of the device

	mu   sync.Mutex
	cond sync.Cond // signals that got grew, or that a waiter's context ended
	want uint64
	got  uint64
	at   time.Duration
	err  error // of the stream that reached it
}

// Init prepares an event of a device that was opened at the given time.
func (e *Event) Init(family string, opened time.Time) {
	e.family, e.opened = family, opened
	e.cond.L = &e.mu
}

// Next numbers a new Record.
func (e *Event) Next() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.want++
	return e.want
}

// Latest is the number of the latest Record.
func (e *Event) Latest() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.want
}

// Reach marks Record number n as reached, by a stream whose pending error is err.
func (e *Event) Reach(n uint64, err error) {
	e.mu.Lock()
	if n > e.got {
		e.got, e.at, e.err = n, time.Since(e.opened), err
	}
	e.mu.Unlock()
	e.cond.Broadcast()
}

// Await blocks until Record number n is reached, and returns its stream's error at that point.
func (e *Event) Await(ctx context.Context, n uint64) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.cond.Broadcast()
		})
		defer stop()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.got < n {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: wait for event: %w", e.family, context.Cause(ctx))
		}
		e.cond.Wait()
	}
	return e.err
}

// Done reports whether the latest Record has been reached.
func (e *Event) Done() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got >= e.want
}

// Sync waits for the latest Record.
func (e *Event) Sync(ctx context.Context) error { return e.Await(ctx, e.Latest()) }

// At is the time since the device was opened at which the last Record was reached.
func (e *Event) At() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

// Close does nothing: an event holds no resources.
func (e *Event) Close() error { return nil }
