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

const queueLen = 1024 // commands of a stream; a full queue makes the caller wait

// stream is an npu.Stream: a queue of commands, which the thread of the device gives to a stream of CANN in order.
type stream struct {
	dev  *Device
	name string
	skip *cann.Flag // C memory, because the launching loop reads it; guarded by skipMu against Close

	skipMu sync.Mutex

	mu      sync.Mutex
	room    sync.Cond
	ring    [queueLen]command
	head, n int
	err     error // pending until Sync
	closed  bool
	profile bool
	samples []npu.Sample

	// For the thread only.
	raw     cann.Stream
	born    time.Duration // since the device was opened
	dirty   bool          // CANN has work that no Sync has seen the end of
	aborted bool
	issued  uint64 // pieces of work given to CANN, ever
	pace    pace
	timing  []timing // launches whose times are not read yet
	running *running // a host function
}

var _ npu.Stream = (*stream)(nil)

// NewStream makes a stream.
func (d *Device) NewStream(name string) (npu.Stream, error) {
	s, err := d.newStream(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.streams[s] = true
	}
	d.mu.Unlock()
	if closed { // meanwhile
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, errClosed), s.Close())
	}
	return s, nil
}

func (d *Device) newStream(name string) (*stream, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	s := &stream{dev: d, name: name, skip: cann.NewFlag()}
	s.room.L = &s.mu
	err := d.thread.do(context.Background(), func() error {
		var err error
		if s.raw, err = d.lib.NewStream(); err != nil {
			return err
		}
		s.born = time.Since(d.thread.opened)
		d.thread.streams = append(d.thread.streams, s)
		return nil
	})
	if err != nil {
		s.skip.Close()
		return nil, d.wrap("stream "+name, err)
	}
	return s, nil
}

func (s *stream) Name() string { return s.name }

// post enqueues a command, or returns the pending error.
func (s *stream) post(c command) error { return s.postUntil(context.Background(), c) }

// postUntil is post that stops waiting for room when ctx ends.
func (s *stream) postUntil(ctx context.Context, c command) error {
	s.mu.Lock()
	var stop func() bool
	for {
		switch {
		case s.closed:
			s.mu.Unlock()
			return fmt.Errorf("%s: stream %s is closed", s.dev.name, s.name)
		case s.err != nil && !c.always():
			defer s.mu.Unlock()
			return s.err
		}
		if s.n < queueLen {
			break
		}
		if ctx.Err() != nil {
			s.mu.Unlock()
			return fmt.Errorf("%s: stream %s: its queue of %d commands is full: %w", s.dev.name, s.name, queueLen, context.Cause(ctx))
		}
		if stop == nil {
			stop = context.AfterFunc(ctx, func() {
				s.mu.Lock() // not between the look at ctx and the wait
				defer s.mu.Unlock()
				s.room.Broadcast()
			})
			defer stop()
		}
		s.room.Wait()
	}
	s.ring[(s.head+s.n)%queueLen] = c
	s.n++
	s.mu.Unlock()
	s.dev.thread.notify()
	return nil
}

// peek returns the oldest command, or nil.
func (s *stream) peek() *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return nil
	}
	return &s.ring[s.head]
}

// pop drops the oldest command.
func (s *stream) pop() {
	s.mu.Lock()
	s.ring[s.head] = command{}
	s.head, s.n = (s.head+1)%queueLen, s.n-1
	s.mu.Unlock()
	s.room.Signal()
}

// fail makes err the pending error, unless there is one already.
func (s *stream) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.room.Broadcast()
}

func (s *stream) pending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// failed wraps an error of a command and makes it the pending one; if the device died of it, that is the pending one.
func (s *stream) failed(err error) {
	t := s.dev.thread
	err = fmt.Errorf("%s: stream %s: %w", s.dev.name, s.name, err)
	t.note(err)
	if dead := t.alive(); dead != nil {
		err = dead
	}
	s.fail(err)
}

// collect asks CANN for the error of what ran on the stream. It waits a millisecond at most.
func (s *stream) collect() {
	if s.dev.thread.alive() != nil {
		return
	}
	if _, err := s.dev.lib.SyncStream(s.raw, 1); err != nil {
		s.failed(s.dev.thread.late(err))
	}
}

// Run enqueues launches.
func (s *stream) Run(batch []npu.Launch) error {
	for i, l := range batch {
		if l, ok := l.(*launch); !ok || l.kernel.dev != s.dev {
			return fmt.Errorf("%s: stream %s: launch %d of %d is of another device (%T)", s.dev.name, s.name, i, len(batch), batch[i])
		}
	}
	return s.post(command{kind: runBatch, batch: batch})
}

// CopyIn enqueues a copy to the device. Page-locked memory is read when the copy runs; other memory when the thread of the device gets to it.
func (s *stream) CopyIn(dst npu.Ptr, src []byte) error {
	p, err := s.dev.address(dst, int64(len(src)))
	if err != nil {
		return fmt.Errorf("%s: stream %s: copy in: %w", s.dev.name, s.name, err)
	}
	if len(src) == 0 {
		return nil
	}
	return s.post(command{kind: copyIn, to: p, host: src, locked: s.dev.thread.pages.has(src)})
}

// CopyOut enqueues a copy from the device.
func (s *stream) CopyOut(dst []byte, src npu.Ptr) error {
	p, err := s.dev.address(src, int64(len(dst)))
	if err != nil {
		return fmt.Errorf("%s: stream %s: copy out: %w", s.dev.name, s.name, err)
	}
	if len(dst) == 0 {
		return nil
	}
	return s.post(command{kind: copyOut, from: p, host: dst, locked: s.dev.thread.pages.has(dst)})
}

// Copy enqueues a copy on the device.
func (s *stream) Copy(dst, src npu.Ptr, bytes int64) error {
	d, err1 := s.dev.address(dst, bytes)
	p, err2 := s.dev.address(src, bytes)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: stream %s: copy: %w", s.dev.name, s.name, err)
	}
	if bytes == 0 || d == p {
		return nil
	}
	return s.post(command{kind: copyDevice, to: d, from: p, bytes: bytes})
}

// Do enqueues a host function. It runs on a goroutine of its own, so it may use the device.
func (s *stream) Do(fn func() error) error {
	if fn == nil {
		return fmt.Errorf("%s: stream %s: nil host function", s.dev.name, s.name)
	}
	return s.post(command{kind: hostFunc, fn: fn})
}

// Record enqueues the event.
func (s *stream) Record(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("%s: stream %s: record of an event of another device (%T)", s.dev.name, s.name, e)
	}
	r := ev.next()
	err := s.post(command{kind: recordEvent, rec: r})
	if err != nil { // the command will not
		r.finish(err, time.Since(s.dev.thread.opened))
		r.release()
	}
	return err
}

// Wait makes later commands wait for the event's latest Record.
func (s *stream) Wait(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("%s: stream %s: wait for an event of another device (%T)", s.dev.name, s.name, e)
	}
	r := ev.current()
	if r == nil {
		return nil
	}
	err := s.post(command{kind: waitEvent, rec: r})
	if err != nil {
		r.release()
	}
	return err
}

// Skip sets the flag that is checked before each launch. What CANN already has runs: at most a few hundred calls, see pace.
func (s *stream) Skip(on bool) {
	s.skipMu.Lock()
	defer s.skipMu.Unlock()
	if s.skip != nil {
		s.skip.Set(on)
	}
}

// Close waits for the commands enqueued so far and destroys the stream; idempotent.
func (s *stream) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.mu.Unlock()
	if !first {
		return nil
	}
	if err := s.dev.thread.clean(func() error { return nil }); errors.Is(err, errStuck) {
		return s.dev.wrap("close of stream "+s.name, err)
	}
	_ = s.Sync(context.Background()) // errors have been reported, or nobody asked
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.room.Broadcast()
	s.dev.mu.Lock()
	delete(s.dev.streams, s)
	s.dev.mu.Unlock()
	err := s.dev.thread.clean(s.destroy)
	s.skipMu.Lock()
	s.skip.Close()
	s.skip = nil
	s.skipMu.Unlock()
	if err != nil {
		return s.dev.wrap("close of stream "+s.name, err)
	}
	return nil
}

// destroy runs on the thread.
func (s *stream) destroy() error {
	t := s.dev.thread
	s.dev.quiet() // while the stream can be asked
	for i, o := range t.streams {
		if o == s {
			t.streams = append(t.streams[:i:i], t.streams[i+1:]...)
			break
		}
	}
	s.pace.clear(t)
	for _, m := range s.timing {
		t.retire(m.begin)
		t.retire(m.end)
	}
	s.timing = nil
	return s.dev.lib.DestroyStream(s.raw)
}
