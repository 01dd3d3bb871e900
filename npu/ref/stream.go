package ref

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// stream is one goroutine with a queue.
//
// After an error the stream skips work, as it would compute on garbage, until Sync has reported the error; events are still reached (carrying
// the error to their waiters), so that none hangs.
type stream struct {
	dev  *device
	name string
	born time.Time
	gone chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond // the queue grew, or a task ended, or the stream closes
	queue   []task
	posted  uint64 // tasks enqueued and tasks done, ever
	done    uint64
	err     error
	closing bool
	skip    atomic.Bool // see Skip
	profile bool
	samples []npu.Sample
}

// task is one entry of the queue: batch, or fn with its name. Tasks marked always run after an error too.
type task struct {
	batch  []npu.Launch
	name   string
	fn     func() error
	always bool
}

var _ npu.Stream = (*stream)(nil)

func (d *device) NewStream(name string) (npu.Stream, error) {
	s := &stream{dev: d, name: name, born: time.Now(), gone: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	d.streams[s] = true
	go s.loop()
	return s, nil
}

func (s *stream) Name() string { return s.name }

// post enqueues, or returns the error that is pending.
func (s *stream) post(t task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return fmt.Errorf("ref: stream %s is closed", s.name)
	}
	if s.err != nil && !t.always {
		return s.err
	}
	s.queue = append(s.queue, t)
	s.posted++
	s.changed.Broadcast()
	return nil
}

func (s *stream) loop() {
	defer close(s.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 {
			if s.closing {
				return
			}
			s.changed.Wait()
		}
		t := s.queue[0]
		s.queue = s.queue[1:]
		if s.err == nil || t.always {
			profile := s.profile
			s.mu.Unlock()
			err := s.exec(t, profile)
			s.mu.Lock()
			if s.err == nil && err != nil {
				s.err = fmt.Errorf("stream %s: %w", s.name, err)
			}
		}
		s.done++
		s.changed.Broadcast()
	}
}

// exec runs a task without the lock. A panic of a host function becomes the stream's error: it is not this goroutine's to die of.
func (s *stream) exec(t task, profile bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("ref: %s: panic: %v", t.name, r)
		}
	}()
	if t.fn != nil {
		if s.skip.Load() && !t.always {
			return nil
		}
		return t.fn()
	}
	for _, nl := range t.batch {
		if s.skip.Load() {
			return nil
		}
		l := nl.(*launch) // Run checked
		begin := time.Now()
		if err := run(l.kernel.op, l.args, s.dev.threads); err != nil {
			return err
		}
		if profile {
			sample := npu.Sample{Launch: l, Begin: begin.Sub(s.born), Dur: time.Since(begin)}
			s.mu.Lock()
			s.samples = append(s.samples, sample)
			s.mu.Unlock()
		}
	}
	return nil
}

func (s *stream) Run(batch []npu.Launch) error {
	for i, l := range batch {
		if _, ok := l.(*launch); !ok {
			return fmt.Errorf("ref: stream %s: launch %d of %d is of another device (%T)", s.name, i, len(batch), l)
		}
	}
	return s.post(task{name: "kernel", batch: batch})
}

func (s *stream) CopyIn(dst npu.Ptr, src []byte) error {
	d, err := span(dst, int64(len(src)))
	if err != nil {
		return fmt.Errorf("ref: copy in: %w", err)
	}
	return s.post(task{name: "copy in", fn: func() error { copy(d, src); return nil }})
}

func (s *stream) CopyOut(dst []byte, src npu.Ptr) error {
	m, err := span(src, int64(len(dst)))
	if err != nil {
		return fmt.Errorf("ref: copy out: %w", err)
	}
	return s.post(task{name: "copy out", fn: func() error { copy(dst, m); return nil }})
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
	return s.post(task{name: "copy", fn: func() error { copy(d, m); return nil }})
}

func (s *stream) Do(fn func() error) error {
	if fn == nil {
		return fmt.Errorf("ref: stream %s: nil host function", s.name)
	}
	return s.post(task{name: "host function", fn: fn})
}

// Sync waits for what was enqueued before it.
func (s *stream) Sync(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for until := s.posted; s.done < until; s.changed.Wait() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ref: sync of stream %s, %d tasks left: %w", s.name, until-s.done, context.Cause(ctx))
		}
	}
	err := s.err
	s.err = nil
	return err
}

// Skip makes the goroutine pass over what changes memory.
func (s *stream) Skip(on bool) { s.skip.Store(on) }

func (s *stream) Profile(on bool) []npu.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.samples
	s.profile, s.samples = on, nil
	return got
}

// Close lets the queue run dry and ends the goroutine.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.gone
	s.dev.mu.Lock()
	delete(s.dev.streams, s)
	s.dev.mu.Unlock()
	return nil
}
