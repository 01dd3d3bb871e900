//go:build linux

package shm

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// A rank with missing peers reports them long before it gives up.
func TestJoinTellsWhoIsMissing(t *testing.T) {
	for rank, want := range [][]int{{1, 2}, {0}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("told")
		var got []int
		_, err := Join(ctx, Config{Job: "late", Rank: rank, Size: 3, Dir: t.TempDir(), Timeout: time.Minute, lateAfter: time.Nanosecond, Late: func(missing []int) {
			got = missing
			cancel(enough)
		}})
		if !errors.Is(err, enough) || !slices.Equal(got, want) {
			t.Errorf("rank %d: missing %v, want %v (%v)", rank, got, want, err)
		}
	}
}
