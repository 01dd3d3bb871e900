//go:build cgo && linux

package acl

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// command is one entry of a stream's queue, a value so that posting it allocates nothing.
type command struct {
	kind     kind
	stage    uint8 // how far it came
	locked   bool  // host is page-locked
	batch    []npu.Launch
	at       int64 // launches or bytes that are done
	to, from cann.Addr
	bytes    int64
	host     []byte
	fn       func() error
	raw      func(cann.Stream) error
	rec      *record
	sync     *syncer
	mark     cann.Event
	slot     int64
	slotAt   int64
}

type kind uint8

const (
	runBatch kind = iota
	copyIn
	copyOut
	copyDevice
	clearMemory
	hostFunc
	rawCall
	recordEvent
	waitEvent
	syncStream
)

// always reports whether a command counts even after an error: events must be reached, or their waiters would hang.
func (c *command) always() bool { return c.kind >= recordEvent }

// verdict is what became of a command when the thread looked at it.
type verdict uint8

const (
	finished verdict = iota
	partly           // CANN got some of it; it is looked at again after the other streams had their turn
	blocked          // it waits for something that the thread notices by itself
	waiting          // it waits for CANN, which must be asked
)

// advance gives commands to CANN until one must wait. It reports whether it did anything, and whether CANN must be asked again.
func (s *stream) advance() (busy, polls bool) {
	const turn = 32 // commands, before other streams have their turn
	for range turn {
		c := s.peek()
		if c == nil {
			return busy, false
		}
		switch s.step(c) {
		case finished:
			s.pop()
			busy = true
		case partly:
			return true, false
		case blocked:
			return busy, false
		case waiting:
			return busy, true
		}
	}
	return true, false
}

// step executes a command as far as it goes. Errors become the stream's.
func (s *stream) step(c *command) verdict {
	dead := s.dev.thread.alive()
	if !c.always() && c.stage == 0 && (dead != nil || s.skip.Get() || s.pending() != nil) {
		return finished
	}
	var v verdict
	var err error
	switch c.kind {
	case runBatch:
		v, err = s.stepRun(c)
	case copyIn:
		v, err = s.stepIn(c)
	case copyOut:
		v, err = s.stepOut(c)
	case copyDevice:
		s.dev.changed(c.to, c.bytes)
		err = s.dev.lib.Copy(c.to, c.from, c.bytes, cann.DeviceToDevice, s.raw)
		s.gave()
	case clearMemory:
		s.dev.changed(c.to, c.bytes)
		err = s.dev.lib.Zero(c.to, c.bytes, s.raw)
		s.gave()
	case hostFunc:
		v, err = s.stepFunc(c)
	case rawCall:
		err = guard(func() error { return c.raw(s.raw) })
		s.gave()
	case recordEvent:
		s.stepRecord(c.rec)
	case waitEvent:
		v, err = s.stepWait(c.rec)
	case syncStream:
		err = s.stepSync(c.sync)
	}
	if err != nil {
		s.failed(err)
		return finished
	}
	return v
}

// gave notes that CANN got work.
func (s *stream) gave() { s.dirty, s.issued = true, s.issued+1 }

// mark records an event behind what CANN has of this stream.
func (s *stream) mark() (cann.Event, error) {
	e, err := s.dev.thread.event()
	if err != nil {
		return 0, err
	}
	if err = s.dev.lib.Record(e, s.raw); err != nil {
		s.dev.thread.retire(e)
		return 0, err
	}
	return e, nil
}

// passed reports whether a mark has been reached, and gives it back then. A dead device reaches none.
func (s *stream) passed(mark *cann.Event) (bool, error) {
	if *mark == 0 || s.dev.thread.alive() != nil {
		s.dev.thread.retire(*mark)
		*mark = 0
		return true, nil
	}
	ok, err := s.dev.lib.Reached(*mark)
	if err == nil && !ok {
		return false, nil
	}
	s.dev.thread.retire(*mark)
	*mark = 0
	if err != nil {
		err = s.dev.thread.late(err)
	}
	return true, err
}

// stepRecord records an event. It is over at once where CANN cannot reach it.
func (s *stream) stepRecord(r *record) {
	defer r.release()
	t := s.dev.thread
	err := s.pending()
	if t.alive() != nil {
		r.finish(t.alive(), time.Since(t.opened))
		return
	}
	h, failed := s.mark()
	r.mu.Lock()
	r.handle, r.issued, r.err = h, true, err
	r.mu.Unlock()
	if failed != nil {
		failed = fmt.Errorf("record of an event: %w", failed)
		s.failed(failed)
		r.finish(s.pending(), time.Since(t.opened))
		return
	}
	s.gave()
}

// stepWait makes CANN's stream wait, once the event is recorded there.
func (s *stream) stepWait(r *record) (verdict, error) {
	issued, over, err := r.state()
	if !issued {
		return blocked, nil
	}
	defer r.release()
	if over || err != nil || s.dev.thread.alive() != nil {
		return finished, err
	}
	err = s.dev.lib.WaitEvent(s.raw, r.handle)
	s.gave()
	return finished, err
}

// stepSync ends a Sync when CANN's stream is done.
func (s *stream) stepSync(w *syncer) error {
	t := s.dev.thread
	if !s.dirty || t.alive() != nil {
		if err := s.readTimes(); err != nil {
			s.failed(err)
		}
		w.finish(s)
		return nil
	}
	m, err := s.mark()
	if err != nil {
		s.failed(fmt.Errorf("sync: %w", err))
		w.finish(s)
		return nil
	}
	until := s.issued
	t.waits = append(t.waits, wait{
		poll: func() (bool, error) {
			if t.alive() != nil { // the end of waiting is not that of the work: cut tells
				return false, nil
			}
			ok, err := s.passed(&m)
			if !ok {
				return false, nil
			}
			if err == nil {
				s.collect()
				err = s.readTimes()
			}
			if err != nil {
				s.failed(err)
			}
			if s.issued == until && t.alive() == nil {
				s.dirty = false
			}
			w.finish(s)
			return true, nil
		},
		cut: func(error) { t.retire(m); w.finish(s) },
	})
	return nil
}
