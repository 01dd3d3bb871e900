//go:build cgo && linux

package acl

import (
	"errors"
	"slices"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// event takes an event that nothing uses.
func (t *thread) event() (cann.Event, error) {
	const rest = 64 // an event rests for a while before it is recorded again
	if e := t.idle(rest); e != 0 {
		return e, nil
	}
	e, err := t.lib.NewEvent()
	if err != nil {
		var c *cann.Error
		if errors.As(err, &c) && c.Code == cann.CodeNoEvents {
			if e := t.idle(0); e != 0 {
				return e, nil
			}
		}
		return 0, err
	}
	t.poolMu.Lock()
	t.events = append(t.events, e)
	t.poolMu.Unlock()
	return e, nil
}

// idle takes the event that has been idle for the longest, if there are more than some.
func (t *thread) idle(more int) cann.Event {
	t.poolMu.Lock()
	defer t.poolMu.Unlock()
	if len(t.pool) <= more {
		return 0
	}
	e := t.pool[0]
	t.pool = slices.Delete(t.pool, 0, 1)
	return e
}

// retire gives an event back; from any goroutine.
func (t *thread) retire(e cann.Event) {
	if e == 0 {
		return
	}
	t.poolMu.Lock()
	defer t.poolMu.Unlock()
	t.pool = append(t.pool, e)
}
