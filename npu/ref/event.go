package ref

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/queue"
)

type event struct {
	queue.Event
	dev *device

	mu     sync.Mutex
	gate   *gate // of the stream of the latest Record
	number uint64
}

var _ npu.Event = (*event)(nil)

func (d *device) NewEvent() (npu.Event, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	e := &event{dev: d}
	e.Init("ref", d.opened)
	return e, nil
}

func (s *stream) Record(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("ref: record of an event of another device (%T)", e)
	}
	n := ev.Next()
	t := task{name: "record", always: true, number: s.gate.post(), fn: func(failed error) error { ev.Reach(n, failed); return nil }}
	ev.mu.Lock()
	ev.gate, ev.number = s.gate, t.number
	ev.mu.Unlock()
	err := s.Post(t)
	if err != nil {
		ev.Reach(n, err) // the task will not
	}
	return err
}

// release returns a function that lets the stream run up to the latest Record.
func (e *event) release() func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, n := e.gate, e.number
	return func() { g.release(n) }
}

// Done also lets the stream run, because the caller may ask again.
func (e *event) Done() bool {
	e.release()()
	return e.Event.Done()
}

// Sync waits for the latest Record.
func (e *event) Sync(ctx context.Context) error {
	e.release()()
	return e.Event.Sync(ctx)
}

func (s *stream) Wait(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("ref: wait for an event of another device (%T)", e)
	}
	n, release := ev.Latest(), ev.release()
	return s.post(task{name: "wait", always: true, fn: func(error) error {
		release()
		return ev.Await(context.Background(), n)
	}})
}
