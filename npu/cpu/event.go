//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// event counts its Records: want were enqueued, and the one numbered got has been reached.
type event struct {
	dev *Device

	mu   sync.Mutex
	cond sync.Cond // got grew, or a waiter's context ended
	want uint64
	got  uint64
	at   time.Duration
	err  error // of the stream that reached it
}

var _ npu.Event = (*event)(nil)

// NewEvent makes an event that counts as reached until it is recorded.
func (d *Device) NewEvent() (npu.Event, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	e := &event{dev: d}
	e.cond.L = &e.mu
	return e, nil
}

// next numbers a new Record; latest is the number of the last one.
func (e *event) next() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.want++
	return e.want
}

func (e *event) latest() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.want
}

func (e *event) reach(n uint64, err error) {
	e.mu.Lock()
	if n > e.got {
		e.got, e.at, e.err = n, time.Since(e.dev.opened), err
	}
	e.mu.Unlock()
	e.cond.Broadcast()
}

// await blocks until Record number n was reached, and returns the error that its stream had then.
func (e *event) await(ctx context.Context, n uint64) error {
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
			return fmt.Errorf("cpu: wait for event: %w", context.Cause(ctx))
		}
		e.cond.Wait()
	}
	return e.err
}

func (e *event) Done() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got >= e.want
}

func (e *event) Sync(ctx context.Context) error { return e.await(ctx, e.latest()) }

func (e *event) At() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

func (e *event) Close() error { return nil }
