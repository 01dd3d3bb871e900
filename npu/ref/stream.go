package ref

import (
	"context"
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
	gate *gate       // nil: tasks run as soon as they can
}

// task is one entry of the queue: a batch, or a function. Tasks marked always run even after an error.
type task struct {
	batch  []npu.Launch
	name   string
	fn     func(failed error) error
	always bool
	number uint64 // for the gate
}

var _ npu.Stream = (*stream)(nil)

func (d *device) NewStream(name string) (npu.Stream, error) {
	var late *gate
	if d.memory == strictMemory {
		late = newGate()
	}
	s := &stream{gate: late, dev: d, born: time.Now(), Worker: queue.New("ref", name, queueLen, func(t task) bool { return t.always })}
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

// post enqueues a task.
func (s *stream) post(t task) error {
	t.number = s.gate.post()
	return s.Post(t)
}

// Sync waits for all tasks.
func (s *stream) Sync(ctx context.Context) error {
	s.gate.releaseAll()
	return s.Worker.Sync(ctx)
}

// Close runs what is left.
func (s *stream) Close() error {
	s.gate.releaseAll()
	return s.Worker.Close()
}

func (s *stream) exec(t task, failed error, profile bool) error {
	s.gate.pass(t.number)
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
	return s.post(task{name: "kernel", batch: batch})
}

func (s *stream) CopyIn(dst npu.Ptr, src []byte) error {
	d, err := s.dev.span(dst, int64(len(src)))
	if err == nil {
		src, err = s.dev.source(src)
	}
	if err != nil {
		return fmt.Errorf("ref: stream %s: copy in: %w", s.Name(), err)
	}
	return s.post(task{name: "copy in", fn: func(error) error { copy(d, src); return nil }})
}

func (s *stream) CopyOut(dst []byte, src npu.Ptr) error {
	m, err := s.dev.span(src, int64(len(dst)))
	wait := s.dev.memory != hostMemory && !s.dev.isLocked(dst)
	if err == nil && wait && s.dev.memory == strictMemory {
		err = errUnlocked
	}
	if err != nil {
		return fmt.Errorf("ref: stream %s: copy out: %w", s.Name(), err)
	}
	if err := s.post(task{name: "copy out", fn: func(error) error { copy(dst, m); return nil }}); err != nil || !wait {
		return err
	}
	copied := make(chan struct{})
	if err := s.post(task{name: "copied", always: true, fn: func(error) error { close(copied); return nil }}); err != nil {
		return err
	}
	s.gate.releaseAll()
	<-copied // an error of the stream stays pending
	return nil
}

func (s *stream) Copy(dst, src npu.Ptr, bytes int64) error {
	d, err := s.dev.span(dst, bytes)
	if err != nil {
		return fmt.Errorf("ref: stream %s: copy to: %w", s.Name(), err)
	}
	m, err := s.dev.span(src, bytes)
	if err != nil {
		return fmt.Errorf("ref: stream %s: copy from: %w", s.Name(), err)
	}
	return s.post(task{name: "copy", fn: func(error) error { copy(d, m); return nil }})
}

func (s *stream) Do(fn func() error) error {
	if fn == nil {
		return fmt.Errorf("ref: stream %s: nil host function", s.Name())
	}
	return s.post(task{name: "host function", fn: func(error) error { return fn() }})
}

// Skip makes the goroutine skip tasks that change memory.
func (s *stream) Skip(on bool) { s.skip.Store(on) }
