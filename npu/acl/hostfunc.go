//go:build cgo && linux

package acl

import "sync/atomic"

// running is a host function that runs on its own goroutine.
type running struct {
	over atomic.Bool
	err  error
}

// stepFunc runs a host function in stream order: what was enqueued before it has run, what is enqueued behind it waits in the queue.
func (s *stream) stepFunc(c *command) (verdict, error) {
	const (
		begin   = iota
		behind  // waits for what is before it
		started // waits for the function
	)
	switch c.stage {
	case begin:
		c.stage = behind
		if s.dirty {
			m, err := s.mark()
			if err != nil {
				return finished, err
			}
			c.mark = m
			return waiting, nil
		}
		fallthrough
	case behind:
		if ok, err := s.passed(&c.mark); err != nil || !ok {
			return waiting, err
		}
		if s.dirty {
			s.collect()
		}
		if s.pending() != nil || s.skip.Get() || s.dev.thread.alive() != nil { // of a dead device nothing says what has run
			return finished, nil
		}
		s.dirty = false
		c.stage = started
		r := &running{}
		s.running = r
		fn, t := c.fn, s.dev.thread
		go func() { // Sync and Close wait for it, because they wait for the command
			r.err = guard(fn)
			r.over.Store(true)
			t.notify()
		}()
	}
	if !s.running.over.Load() {
		return blocked, nil
	}
	err := s.running.err
	s.running = nil
	return finished, err
}
