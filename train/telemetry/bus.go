package telemetry

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	busEvents = 1024
	busWait   = 20 * time.Millisecond // how long an event waits for a full bus
	busDrain  = 10 * time.Second      // how long Close waits for slow sinks
)

// Bus delivers events from its own goroutine, so that a slow disk does not slow down training. When its sinks fall far behind, spans are dropped at
// once and other events after a short wait; a warning reports how many. It is safe for concurrent use.
type Bus struct {
	mu      sync.RWMutex // held for writing by Close only
	closed  bool
	ch      chan Event
	done    chan struct{}
	out     Sink
	err     error
	dropped atomic.Int64
}

// NewBus starts delivering to sinks, by the rules of Multi.
func NewBus(sinks ...Sink) *Bus {
	b := &Bus{ch: make(chan Event, busEvents), done: make(chan struct{}), out: Multi(sinks...)}
	go b.run()
	return b
}

func (b *Bus) run() {
	defer close(b.done)
	told := false
	for e := range b.ch {
		b.out.Emit(e)
		if n := b.dropped.Load(); n > 0 && !told {
			told = true
			b.out.Emit(Warning{Text: fmt.Sprintf("logging is falling behind: %d events dropped so far", n)})
		}
	}
	b.err = b.out.Close()
}

// Emit never blocks for long and never fails. Events after Close are dropped.
func (b *Bus) Emit(e Event) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil
	}
	select {
	case b.ch <- e:
		return nil
	default:
	}
	if _, span := e.(Span); !span {
		t := time.NewTimer(busWait)
		defer t.Stop()
		select {
		case b.ch <- e:
			return nil
		case <-t.C:
		}
	}
	b.dropped.Add(1)
	return nil
}

// Dropped is the number of lost events.
func (b *Bus) Dropped() int64 { return b.dropped.Load() }

// Close delivers pending events, closes the sinks, and returns all errors so far.
func (b *Bus) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.ch)
	}
	b.mu.Unlock()
	select {
	case <-b.done:
		return b.err
	case <-time.After(busDrain):
		return errors.New("telemetry: a sink does not return; its last events are lost")
	}
}
