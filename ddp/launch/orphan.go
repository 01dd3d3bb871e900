package launch

import (
	"context"
	"os"
	"time"
)

// Orphaned returns a channel that is closed when the process that started this rank has ended, for example after kill -9 of mpirun: no launcher could then
// stop the rank, and it would keep training unnoticed. It returns nil for a rank of gotrain's own supervisor, which the kernel kills, and for a process
// without a launcher or the only rank of one, which may outlive its parent. The watch ends with ctx.
func Orphaned(ctx context.Context, id Identity) <-chan struct{} {
	if id.World < 2 || id.Source == SourceGotrain || id.Source == SourceSingle {
		return nil
	}
	return orphaned(ctx, os.Getppid, time.Second)
}

func orphaned(ctx context.Context, parent func() int, every time.Duration) <-chan struct{} {
	first := parent()
	if first <= 1 { // the first process of a container: when it ends, all others do
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
