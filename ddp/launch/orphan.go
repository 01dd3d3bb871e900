package launch

import (
	"context"
	"os"
	"time"
)

// Orphaned returns a channel that is closed when the process which started this rank has ended, as after a kill -9 of mpirun: nobody is left then who could
// stop the rank, and it would train on unseen. A rank of gotrain's own supervisor does not need it, since the kernel kills it; a process without a launcher,
// or the only rank of one, may well outlive its parent. The watch ends with ctx.
func Orphaned(ctx context.Context, id Identity) <-chan struct{} {
	if id.World < 2 || id.Source == SourceGotrain || id.Source == SourceSingle {
		return nil
	}
	return orphaned(ctx, os.Getppid, time.Second)
}

func orphaned(ctx context.Context, parent func() int, every time.Duration) <-chan struct{} {
	first := parent()
	if first <= 1 { // the first process of a container, which takes all others with it
		return nil
	}
	gone := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if parent() != first {
					close(gone)
					return
				}
			}
		}
	}()
	return gone
}
