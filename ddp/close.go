package ddp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [memory in use]
//
// Gradient memory, and the buffers of a codec, may only be freed when no transport touches them. A handle that is done says so (comm.Handle). Two kinds of
// handles do not: one whose error is comm.ErrInUse, and one that is not done long after the group was broken, because a device hangs. Both make the memory
// loose: Close then leaves it, and with it the codec, to the end of the process.

// quietTime is how long a transport may take to let go of the memory of a call after the group broke.
const quietTime = 30 * time.Second

// quiet waits until a transport lets go of the memory of a call that failed. The group must be broken.
func (e *Engine) quiet(h comm.Handle) {
	timer := time.NewTimer(quietTime)
	defer timer.Stop()
	select {
	case <-h.Done():
		if errors.Is(h.Wait(context.Background()), comm.ErrInUse) {
			e.loose.Store(true)
		}
	case <-e.leave:
		e.loose.Store(true)
	case <-timer.C:
		e.loose.Store(true)
	}
}

// drop ends a reduction that cannot be used.
func (e *Engine) drop(f inFlight, err error) error {
	e.abort(err)
	e.quiet(f.handle)
	f.cancel()
	return err
}

// Close stops the engine's goroutines and frees gradient memory, which nothing may use any more: synchronise the device before. An unfinished step
// is abandoned, and the peers are notified. The communicator stays open. Idempotent. Memory that the transport does not let go of is not freed; Close then
// returns an error.
func (e *Engine) Close() error {
	if !e.halt() {
		return nil
	}
	errs := []error{e.look.close(), e.part()}
	if e.loose.Load() {
		e.keep()
		return errors.Join(append(errs, fmt.Errorf(
			"ddp: rank %d: transport %q did not let go of gradient memory within %v; it stays allocated until this process ends",
			e.comm.Rank(), e.comm.Transport(), quietTime))...)
	}
	if e.codec != nil {
		errs = append(errs, e.codec.Close())
	}
	return errors.Join(append(errs, e.mem.Free())...)
}

// undo gives back what New has made. A collective that failed meanwhile may leave its memory in use; its group is broken then.
func (e *Engine) undo() error {
	if e.loose.Load() {
		e.keep()
		return nil
	}
	errs := []error{e.look.close(), e.part()}
	if e.codec != nil {
		errs = append(errs, e.codec.Close())
	}
	return errors.Join(append(errs, e.mem.Free())...)
}

// part leaves the groups that the engine has made.
func (e *Engine) part() error { return closeGroups(e.groups, e.comm) }

// Abandon is Close for a device that cannot be stopped: gradient memory stays until the process ends, even after Close of the communicator.
func (e *Engine) Abandon() error {
	e.keep()
	e.leaving.Do(func() { close(e.leave) })
	if e.halt() {
		return e.part()
	}
	return nil
}

// keeper is memory that can be kept although its owner would free it.
type keeper interface{ Keep() }

// keep leaves gradient memory to the end of the process.
func (e *Engine) keep() {
	if k, ok := e.mem.(keeper); ok {
		k.Keep()
	}
}

// halt stops the goroutines; it returns false if they were already stopped.
func (e *Engine) halt() bool {
	e.mu.Lock()
	if e.err == ErrClosed {
		e.mu.Unlock()
		e.wg.Wait()
		return false
	}
	busy := e.err == nil && e.step.filled > e.step.done
	if e.err == nil {
		close(e.broken)
	}
	e.err = ErrClosed
	e.mu.Unlock()
	if busy {
		e.abort(fmt.Errorf("ddp: rank %d closed its engine in the middle of a step", e.comm.Rank()))
	}
	e.cancel()
	e.wg.Wait()
	return true
}

// fail breaks the engine and notifies the peers.
func (e *Engine) fail(err error) {
	if e.end(err) {
		e.abort(err)
	}
}

// abort breaks all communicators.
func (e *Engine) abort(err error) {
	e.comm.Abort(err)
	for _, g := range e.groups {
		if g != e.comm {
			g.Abort(err)
		}
	}
	if e.ctl != e.comm {
		e.ctl.Abort(err)
	}
}

// end breaks the engine with an error that the peers detect by themselves. It reports whether this was the first error.
func (e *Engine) end(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	e.err = err
	close(e.broken)
	return true
}

// Err returns the error that broke the engine, or nil.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Broken is closed when the engine breaks; Err says why.
func (e *Engine) Broken() <-chan struct{} { return e.broken }
