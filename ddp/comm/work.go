package comm

import (
	"context"
	"sync"
	"time"
)

// Note [long work]
//
// Two deadlines bound how long ranks wait for a missing rank. The short one, patience, is for a silent rank: it is dead, frozen or
// hung. The long one is for a rank at long work that must be done while the others wait: writing a checkpoint, reading weights,
// indexing data, compiling kernels. Such a rank reports the work (Communicator.Work) and beats while it makes progress; every beat that reaches a
// waiting rank restarts its patience, until the long deadline passes. The transport decides how a beat travels: as a word in shared
// memory, or as a message "busy" on a wire.
//
// A beat must mean progress. If the operating system or a library does the work (a file sync, a compiler), a rank only knows that its process
// runs; Steady then beats for it, and the long deadline ends a hang.

// Work is long work of a rank. Its methods are safe for concurrent use, and after Close of the communicator.
type Work interface {
	// Beat reports that the work has made progress.
	Beat()
	// End reports that the work is done, and counts as a last beat. Idempotent.
	End()
}

type patienceKey struct{}

// Patient returns the context of a collective with both deadlines: it ends after limit, and a rank that has neither arrived nor beaten for patience ends
// the wait earlier, with a *TimeoutError that names it. A limit below patience counts as patience.
func Patient(ctx context.Context, patience, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, patienceKey{}, patience)
	return context.WithTimeout(ctx, max(patience, limit))
}

// Patience returns how long a rank may be silent in a wait under ctx; 0 if only the deadline of ctx counts.
func Patience(ctx context.Context) time.Duration {
	d, _ := ctx.Value(patienceKey{}).(time.Duration)
	return d
}

// BeatEvery is the pause between beats of Steady: well below any patience.
const BeatEvery = 200 * time.Millisecond

// Steady begins work and beats as long as this process runs and alive, if not nil, returns true. The returned function ends it. c may be nil for a rank
// that is alone.
func Steady(c Communicator, what string, alive func() bool) (end func()) {
	if c == nil || c.Size() == 1 {
		return func() {}
	}
	w, stop := c.Work(what), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(BeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if alive == nil || alive() {
					w.Beat()
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
		w.End()
	})
}
