//go:build cgo && linux

package acl

import (
	"context"
	"fmt"
	"sync"
)

// syncer is a caller of Sync.
type syncer struct {
	mu   sync.Mutex
	gone bool // the caller does not wait any more, or has its answer
	done chan error
}

// finish tells the caller the stream's pending error and clears it.
func (w *syncer) finish(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return // the error stays pending
	}
	w.gone = true
	dead := s.dev.thread.alive()
	s.mu.Lock()
	err := s.err
	if err == nil { // a device that died a moment ago has not told its streams yet
		err = dead
	}
	s.err = dead // which is never cleared
	s.mu.Unlock()
	w.done <- err
}

// Sync waits for all commands so far and returns the first error since the last Sync.
func (s *stream) Sync(ctx context.Context) error {
	jam := s.dev.thread.jammed()
	w := &syncer{done: make(chan error, 1)}
	if err := s.postUntil(ctx, command{kind: syncStream, sync: w}); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-jam:
		return fmt.Errorf("%s: %w", s.dev.name, errStuck)
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-w.done: // it came in the same moment
		return err
	default:
	}
	w.gone = true
	s.mu.Lock()
	left := s.n
	s.mu.Unlock()
	return fmt.Errorf("%s: sync of stream %s, %d commands left: %w", s.dev.name, s.name, left, context.Cause(ctx))
}
