package ref

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/queue"
)

const queueLen = 1024 // tasks; a full queue blocks the caller

// stream is a goroutine with a queue.
type stream struct {
	*queue.Worker[task]
	dev  *device
	born time.Time
	skip atomic.Bool // see Skip
}

// task is one entry of the queue: a batch, or a function. Tasks marked always run even after an error.
type task struct {
	batch  []npu.Launch
	name   string
	fn     func(failed error) error
	always bool
}

var _ npu.Stream = (*stream)(nil)

func (d *device) NewStream(name string) (npu.Stream, error) {
	s := &stream{dev: d, born: time.Now(), Worker: queue.New("ref", name, queueLen, func(t task) bool { return t.always })}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	d.streams[s] = true
	go func() {
		defer s.Ended()
		s.Worker.Run(s.exec)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.streams, s)
	}()
	return s, nil
}

func (s *stream) exec(t task, failed error, profile bool) error {
	if t.fn != nil {
		if s.skip.Load() && !t.always {
			return nil
		}
		return t.fn(failed)
	}
	for _, nl := range t.batch {
		if s.skip.Load() {
			return nil
		}
		l := nl.(*launch) // checked by Run
		begin := time.Now()
		if err := run(l.kernel.op, l.args, s.dev.threads); err != nil {
			return err
		}
		if profile {
			s.Sample(npu.Sample{Launch: l, Begin: begin.Sub(s.born), Dur: time.Since(begin)})
		}
	}
	return nil
}

func (s *stream) Run(batch []npu.Launch) error {
	for i, l := range batch {
		if _, ok := l.(*launch); !ok {
			return fmt.Errorf("ref: stream %s: launch %d of %d is of another device (%T)", s.Name(), i, len(batch), l)
		}
	}
	return s.Post(task{name: "kernel", batch: batch})
}

func (s *stream) CopyIn(dst npu.Ptr, src []byte) error {
	d, err := span(dst, int64(len(src)))
	if err != nil {
		return fmt.Errorf("ref: copy in: %w", err)
	}
	return s.Post(task{name: "copy in", fn: func(error) error { copy(d, src); return nil }})
}

func (s *stream) CopyOut(dst []byte, src npu.Ptr) error {
	m, err := span(src, int64(len(dst)))
	if err != nil {
		return fmt.Errorf("ref: copy out: %w", err)
	}
	return s.Post(task{name: "copy out", fn: func(error) error { copy(dst, m); return nil }})
}

func (s *stream) Copy(dst, src npu.Ptr, bytes int64) error {
	d, err := span(dst, bytes)
	if err != nil {
		return fmt.Errorf("ref: copy to: %w", err)
	}
	m, err := span(src, bytes)
	if err != nil {
		return fmt.Errorf("ref: copy from: %w", err)
	}
	return s.Post(task{name: "copy", fn: func(error) error { copy(d, m); return nil }})
}

func (s *stream) Do(fn func() error) error {
	if fn == nil {
		return fmt.Errorf("ref: stream %s: nil host function", s.Name())
	}
	return s.Post(task{name: "host function", fn: func(error) error { return fn() }})
}

// Skip makes the goroutine skip tasks that change memory.
func (s *stream) Skip(on bool) { s.skip.Store(on) }
