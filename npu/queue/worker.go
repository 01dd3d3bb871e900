package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/npu"
)

// Worker is the queue of one thread. Its methods may be called from any goroutine, but Run and Ended by the thread only.
type Worker[T any] struct {
	family, name string
	always       func(T) bool
	tasks        chan T
	gone         chan struct{}

	posting sync.RWMutex // held for reading while a task is put into the queue, for writing by Close

	mu      sync.Mutex
	changed sync.Cond // done or err changed, or a Sync's context ended
	posted  uint64    // tasks enqueued and tasks done, ever
	done    uint64
	err     error
	closing bool
	profile bool
	samples []npu.Sample
}

// New makes the queue of a stream. A full queue of length tasks makes Post wait. always marks tasks that run after an error too.
func New[T any](family, name string, length int, always func(T) bool) *Worker[T] {
	w := &Worker[T]{family: family, name: name, always: always, tasks: make(chan T, length), gone: make(chan struct{})}
	w.changed.L = &w.mu
	return w
}

// Name is the stream's name.
func (w *Worker[T]) Name() string { return w.name }

// Post enqueues a task, or returns the pending error.
func (w *Worker[T]) Post(t T) error {
	w.posting.RLock()
	defer w.posting.RUnlock()
	if err := w.admit(t); err != nil {
		return err
	}
	w.tasks <- t
	return nil
}

func (w *Worker[T]) admit(t T) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return fmt.Errorf("%s: stream %s is closed", w.family, w.name)
	}
	if w.err != nil && !w.always(t) {
		return w.err
	}
	w.posted++
	return nil
}

// Run executes tasks until Close. exec gets the pending error and whether kernels are to be timed; its first error becomes the pending one.
func (w *Worker[T]) Run(exec func(t T, failed error, profile bool) error) {
	for t := range w.tasks {
		w.mu.Lock()
		failed, profile := w.err, w.profile
		w.mu.Unlock()
		var err error
		if failed == nil || w.always(t) {
			err = w.guard(exec, t, failed, profile)
		}
		w.mu.Lock()
		if w.err == nil && err != nil {
			w.err = fmt.Errorf("%s: stream %s: %w", w.family, w.name, err)
		}
		w.done++
		w.mu.Unlock()
		w.changed.Broadcast()
	}
}

// guard turns a panic of a host function into an error: the stream's thread must survive it.
func (w *Worker[T]) guard(exec func(T, error, bool) error, t T, failed error, profile bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return exec(t, failed, profile)
}

// Ended tells Close that the thread is done.
func (w *Worker[T]) Ended() { close(w.gone) }

// Sync waits for the tasks posted before it. It returns the pending error and clears it.
func (w *Worker[T]) Sync(ctx context.Context) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changed.Broadcast()
		})
		defer stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for until := w.posted; w.done < until; w.changed.Wait() {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: sync of stream %s, %d tasks left: %w", w.family, w.name, until-w.done, context.Cause(ctx))
		}
	}
	err := w.err
	w.err = nil
	return err
}

// Sample keeps the time of a kernel until Profile.
func (w *Worker[T]) Sample(s npu.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, s)
}

// Profile returns the samples so far and switches profiling on or off.
func (w *Worker[T]) Profile(on bool) []npu.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.samples
	w.profile, w.samples = on, nil
	return got
}

// Close drains the queue and waits for Ended. It is idempotent.
func (w *Worker[T]) Close() error {
	w.posting.Lock()
	w.mu.Lock()
	first := !w.closing
	w.closing = true
	w.mu.Unlock()
	if first {
		close(w.tasks)
	}
	w.posting.Unlock()
	<-w.gone
	return nil
}
