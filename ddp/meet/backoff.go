package meet

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the pause between attempts: from 50 ms to 1 s, with jitter, so that many ranks do not come at once.
type backoff struct{ pause time.Duration }

// wait waits before the next attempt. It returns false if ctx ended.
func (b *backoff) wait(ctx context.Context) bool {
	b.pause = min(max(2*b.pause, 50*time.Millisecond), time.Second)
	t := time.NewTimer(b.pause/2 + rand.N(b.pause))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
