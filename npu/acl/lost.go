//go:build cgo && linux

package acl

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// note looks whether an error means the death of the device: CANN says so, or something that ran on the device failed, after which CANN promises
// nothing for what runs behind it. It is for the thread.
func (t *thread) note(err error) {
	var e *cann.Error
	var late *lateError
	switch {
	case errors.As(err, &late):
		t.die(err)
	case errors.As(err, &e) && e.Fatal && t.debug:
		t.die(err)
	case errors.As(err, &e) && e.Fatal:
		t.die(t.late(err)) // a call may fail because of what ran before it
	}
}

// die ends the device: every wait ends with the cause, and every later call returns it.
func (t *thread) die(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead == nil {
		t.dead = &deadError{fmt.Errorf("%s is lost: %w", t.name, cause)}
	}
}

// bury ends what waits for a dead device.
func (t *thread) bury() {
	dead := t.alive()
	if dead == nil {
		return
	}
	for _, s := range t.streams {
		s.fail(dead)
	}
	for _, w := range t.waits {
		w.cut(dead)
	}
	t.waits = nil
}

// deadError is the error of a device that was lost.
type deadError struct{ err error }

func (e *deadError) Error() string { return e.err.Error() }
func (e *deadError) Unwrap() error { return e.err }

// alive returns the cause of the device's death.
func (t *thread) alive() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// late explains an error that CANN reports after the launch that caused it.
func (t *thread) late(err error) error {
	if latest := t.recent.String(); latest != "" {
		err = fmt.Errorf("an earlier launch failed (device option debug_sync=true tells which; the latest: %s): %w", latest, err)
	}
	return &lateError{err}
}

// lateError is an error of something that ran on the device.
type lateError struct{ err error }

func (e *lateError) Error() string { return e.err.Error() }
func (e *lateError) Unwrap() error { return e.err }
