package ref

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// event counts its Records: want were enqueued, and the one numbered got has been reached.
type event struct {
	dev *device

	mu   sync.Mutex
	want uint64
	got  uint64
	at   time.Duration
	err  error         // of the stream that reached it
	wake chan struct{} // closed and replaced at every reach; nil while no one waits
}

var _ npu.Event = (*event)(nil)

func (d *device) NewEvent() (npu.Event, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	return &event{dev: d}, nil
}

func (s *stream) Record(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return fmt.Errorf("ref: record of an event of another device (%T)", e)
	}
	ev.mu.Lock()
	ev.want++
	n := ev.want
	ev.mu.Unlock()
	err := s.post(task{name: "record", always: true, fn: func() error {
		s.mu.Lock()
		failed := s.err
		s.mu.Unlock()
		ev.reach(n, failed)
		return nil
	}})
	if err != nil {
		ev.reach(n, err) // no one else will
	}
	return err
}

func (s *stream) Wait(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return fmt.Errorf("ref: wait for an event of another device (%T)", e)
	}
	ev.mu.Lock()
	n := ev.want
	ev.mu.Unlock()
	return s.post(task{name: "wait", always: true, fn: func() error { return ev.await(context.Background(), n) }})
}

func (e *event) reach(n uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > e.got {
		e.got, e.at, e.err = n, time.Since(e.dev.opened), err
	}
	if e.wake != nil {
		close(e.wake)
		e.wake = nil
	}
}

// await blocks until Record number n was reached.
func (e *event) await(ctx context.Context, n uint64) error {
	for {
		e.mu.Lock()
		if e.got >= n {
			err := e.err
			e.mu.Unlock()
			return err
		}
		if e.wake == nil {
			e.wake = make(chan struct{})
		}
		wake := e.wake
		e.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("ref: wait for event: %w", context.Cause(ctx))
		}
	}
}

func (e *event) Done() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got >= e.want
}

func (e *event) Sync(ctx context.Context) error {
	e.mu.Lock()
	n := e.want
	e.mu.Unlock()
	return e.await(ctx, n)
}

func (e *event) At() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

func (e *event) Close() error { return nil }
