package shm

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Time during which this process itself was suspended does not count as silence of its peers.
func TestPatienceOfAStoppedProcess(t *testing.T) {
	const patience = 5 * time.Second
	blocks := []*block{{}, {}, {}}
	at := time.Unix(1000, 0)
	var v vigil
	v.over(7, at)
	look := func(pause time.Duration) []int {
		at = at.Add(pause)
		return v.lifeless(blocks, []int{1, 2}, patience, at)
	}
	if late := look(slice); late != nil {
		t.Fatal(late)
	}
	if late := look(time.Hour); late != nil { // Ctrl-Z and fg
		t.Errorf("ranks %v are late after a pause of this rank", late)
	}
	atomic.AddUint32(&blocks[1].beats, 1)
	var late []int
	for range patience / slice {
		if late = look(slice); late != nil {
			break
		}
	}
	if !slices.Equal(late, []int{2}) {
		t.Errorf("ranks %v are late, want the one that has not beaten", late)
	}
}
