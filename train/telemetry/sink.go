package telemetry

import (
	"errors"
	"fmt"
	"sync"
)

// Sink receives events, one after the other. It ignores kinds that it has no use for. It must not keep slices of an event.
type Sink interface {
	Emit(Event) error
	// Close writes out buffered events. Close is idempotent.
	Close() error
}

// Multi combines several sinks into one. A sink that fails is reported once, as a Warning to the others, and gets no further events; Emit itself
// never fails. A panic of a sink counts as a failure. Multi is safe for concurrent use; nil sinks are skipped.
func Multi(sinks ...Sink) Sink {
	m := &multi{}
	for _, s := range sinks {
		if s != nil {
			m.sinks = append(m.sinks, s)
		}
	}
	return m
}

type multi struct {
	mu    sync.Mutex
	sinks []Sink // nil if it has failed
	errs  []error
	told  []Warning // still to be delivered
}

func (m *multi) Emit(e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.emit(e)
	for len(m.told) > 0 { // delivery may make another sink fail, but each fails only once
		w := m.told[0]
		m.told = m.told[1:]
		m.emit(w)
	}
	return nil
}

func (m *multi) emit(e Event) {
	for i, s := range m.sinks {
		if s == nil {
			continue
		}
		if err := guarded(s.Emit, e); err != nil {
			m.sinks[i] = nil
			m.errs = append(m.errs, err, closeQuietly(s))
			m.told = append(m.told, Warning{Text: fmt.Sprintf("%T is disabled: %v", s, err)})
		}
	}
}

func guarded(emit func(Event) error, e Event) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("telemetry: panic at event %s: %v", e.Kind(), r)
		}
	}()
	return emit(e)
}

func closeQuietly(s Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("telemetry: panic at close: %v", r)
		}
	}()
	return s.Close()
}

// Close closes all sinks and returns all errors so far.
func (m *multi) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range m.sinks {
		if s != nil {
			m.errs = append(m.errs, closeQuietly(s))
			m.sinks[i] = nil
		}
	}
	err := errors.Join(m.errs...)
	m.errs = nil
	return err
}
