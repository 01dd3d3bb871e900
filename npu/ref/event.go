package ref

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/queue"
)

type event struct {
	queue.Event
	dev *device
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
	err := s.Post(task{name: "record", always: true, fn: func(failed error) error { ev.Reach(n, failed); return nil }})
	if err != nil {
		ev.Reach(n, err) // the task will not
	}
	return err
}

func (s *stream) Wait(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("ref: wait for an event of another device (%T)", e)
	}
	n := ev.Latest()
	return s.Post(task{name: "wait", always: true, fn: func(error) error { return ev.Await(context.Background(), n) }})
}
