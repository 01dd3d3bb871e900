package launch

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestOrphaned(t *testing.T) {
	var parent atomic.Int64
	parent.Store(4711)
	gone := orphaned(t.Context(), func() int { return int(parent.Load()) }, time.Millisecond)
	select {
	case <-gone:
		t.Fatal("orphaned while the parent lives")
	case <-time.After(20 * time.Millisecond):
	}
	parent.Store(1)
	<-gone

	if orphaned(t.Context(), func() int { return 1 }, time.Millisecond) != nil {
		t.Error("the first process of a container is watched")
	}
	for source, watched := range map[string]bool{
		SourceOpenMPI: true, SourceTorchrun: true, SourceSlurm: true, SourcePMI: true, SourceGotrain: false, SourceSingle: false,
	} {
		if got := Orphaned(t.Context(), Identity{World: 2, Source: source}) != nil; got != watched {
			t.Errorf("%s: watched %v, want %v", source, got, watched)
		}
		if Orphaned(t.Context(), Identity{World: 1, Source: source}) != nil {
			t.Errorf("%s: the only rank is watched", source)
		}
	}
}
