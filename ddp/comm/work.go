package comm

import (
	"context"
	"sync"
	"time"
)

// Note [long work]
//
// Two deadlines bound how long ranks wait for one that does not come. The short one, patience, is for a rank that shows no life: it is dead, frozen or
// hung. The long one is for a rank at long work that has to be done while the others wait: a checkpoint is written, weights are read,
// data are indexed, kernels are compiled. Such a rank says so (Communicator.Work) and beats while it makes progress; every beat that reaches a
// rank that waits begins its patience anew, until the long deadline passes. How a beat travels is the transport's business: a word in shared
// memory, a message "busy" on a wire.
//
// A beat must mean progress. Where the work is in the hands of the operating system or of a library (a sync of a file, a compiler), all that can be
// said is that this process runs; Steady beats for it then, and the long deadline is what ends a hang.

// Work is long work of a rank. Its methods are safe for concurrent use, and after Close of the communicator.
type Work interface {
	// Beat says that the work has made progress.
	Beat()
	// End says that the work is done, and is a last beat. Idempotent.
	End()
}

type patienceKey struct{}

// Patient is the context of a collective with both deadlines: it ends after limit, and a rank that has neither come nor beaten for patience ends the
// wait before, with a *TimeoutError that names it. A limit below patience counts as patience.
func Patient(ctx context.Context, patience, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, patienceKey{}, patience)
	return context.WithTimeout(ctx, max(patience, limit))
}

// Patience is how long a wait under ctx may see no life of a rank; 0 where only the deadline of ctx counts.
func Patience(ctx context.Context) time.Duration {
	d, _ := ctx.Value(patienceKey{}).(time.Duration)
	return d
}

// BeatEvery is the pause between beats of Steady: well below any patience.
const BeatEvery = 200 * time.Millisecond

// Steady begins work and beats for as long as this process runs and alive, if given, says so. The function that it returns ends it. c may be nil: a rank
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
