//go:build cgo && linux

package acl

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// stepRun gives launches to CANN, some dozens with one C call.
func (s *stream) stepRun(c *command) (verdict, error) {
	if c.slot != 0 {
		return s.haveRead(c)
	}
	if s.pending() != nil {
		return finished, nil
	}
	full, err := s.full()
	if err != nil {
		return finished, err
	}
	if full {
		return waiting, nil
	}
	s.mu.Lock()
	profile := s.profile
	s.mu.Unlock()
	t := s.dev.thread
	part, calls, err := s.part(c.batch[c.at:])
	if err != nil {
		return finished, err
	}
	n := len(part)
	if n == 0 {
		return s.readBack(c, c.batch[c.at].(*launch).unknown())
	}
	if profile || t.debug {
		err = s.oneByOne(part, profile)
	} else {
		err = s.together(part)
	}
	one, two := t.runner.Counts()
	atomic.StoreUint64(&t.phases[0], one)
	atomic.StoreUint64(&t.phases[1], two)
	c.at += int64(n)
	c.stage = 1
	s.pace.count += calls
	if err != nil || int(c.at) == len(c.batch) || s.skip.Get() {
		return finished, err
	}
	return partly, nil
}

// part is what may be given to CANN now of a batch, with its number of calls. It is empty where the first launch needs
// numbers that the host does not know.
func (s *stream) part(batch []npu.Launch) (part []npu.Launch, calls int, err error) {
	n := 0
	for n < min(len(batch), s.dev.thread.runner.Chunk()) && (n == 0 || s.pace.count+calls < paceStep) {
		l := batch[n].(*launch) // checked by Run
		if l.gone {
			return nil, 0, fmt.Errorf("%s: the kernel was closed before it ran", l.kernel.label)
		}
		if l.unknown() != nil {
			break
		}
		l.fill()
		calls += l.seq.Len()
		n++
	}
	return batch[:n], calls, nil
}

// together launches with one C call.
func (s *stream) together(part []npu.Launch) error {
	t := s.dev.thread
	for i, l := range part {
		l := l.(*launch) // checked by Run
		t.runner.Set(i, l.seq)
		t.recent.add(l.kernel.label)
	}
	done, call, phase, code := t.runner.Run(len(part), s.raw, s.skip)
	s.gave()
	if code == 0 {
		return nil
	}
	l := part[done].(*launch)
	return l.explain(call, t.runner.Failed(l.seq, call, phase, code))
}

// oneByOne launches call by call, to time the launches or to find the call that fails on the device.
func (s *stream) oneByOne(part []npu.Launch, profile bool) (err error) {
	for _, l := range part {
		if s.skip.Get() {
			return nil
		}
		l := l.(*launch)
		var m timing
		if profile {
			if m.begin, err = s.mark(); err != nil {
				return err
			}
		}
		s.dev.thread.recent.add(l.kernel.label)
		for i := range l.seq.Len() {
			if l.seq.Left(i) {
				continue
			}
			if err := s.oneCall(l, i); err != nil {
				s.dev.thread.retire(m.begin)
				return err
			}
		}
		if profile {
			if m.end, err = s.mark(); err != nil {
				s.dev.thread.retire(m.begin)
				return err
			}
			m.launch = l
			s.timing = append(s.timing, m)
		}
	}
	return nil
}

// oneCall launches a call; with debug_sync it waits until the device is done with it.
func (s *stream) oneCall(l *launch, i int) error {
	t := s.dev.thread
	err := t.runner.One(l.seq, i, s.raw)
	s.gave()
	if err != nil {
		return l.explain(i, err)
	}
	if !t.debug {
		return nil
	}
	for {
		done, err := s.dev.lib.SyncStream(s.raw, 1000)
		if err != nil {
			return l.explain(i, err)
		}
		if done {
			return nil
		}
	}
}

// explain names the kernel and the call of an error.
func (l *launch) explain(call int, err error) error {
	return fmt.Errorf("%s: call %d of %d, %s: %w", l.kernel.label, call+1, l.seq.Len(), l.kernel.signature(l.seq.Name(call)), err)
}

// timing is a launch between two events.
type timing struct {
	launch     *launch
	begin, end cann.Event
}

// readTimes reads the times of launches that are over. It runs on the thread.
func (s *stream) readTimes() error {
	t := s.dev.thread
	for len(s.timing) > 0 && t.alive() == nil {
		m := s.timing[0]
		ok, err := s.dev.lib.Reached(m.end)
		if err != nil {
			return t.late(err)
		}
		if !ok {
			return nil
		}
		begin, err1 := t.at(m.begin)
		end, err2 := t.at(m.end)
		t.retire(m.begin)
		t.retire(m.end)
		s.timing = slices.Delete(s.timing, 0, 1)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("time of %s: %w", m.launch.kernel.label, err)
		}
		s.mu.Lock()
		s.samples = append(s.samples, npu.Sample{Launch: m.launch, Begin: begin - s.born, Dur: end - begin})
		s.mu.Unlock()
	}
	return nil
}

// Profile switches the timing of launches on or off, and returns what was recorded. Launches that are not over are not among it: call Sync before.
func (s *stream) Profile(on bool) []npu.Sample {
	_ = s.dev.thread.clean(s.readTimes) // a closed device has no more to read
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.samples
	s.profile, s.samples = on, nil
	return got
}

// Launches counts the calls of CANN's operators so far: of first phases, which prepare, and of second phases, which launch. Kernels whose executors are
// reused call the first phase when they are bound and never again.
func (d *Device) Launches() (first, second uint64) {
	return atomic.LoadUint64(&d.thread.phases[0]), atomic.LoadUint64(&d.thread.phases[1])
}
