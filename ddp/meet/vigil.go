package meet

import "time"

// vigil watches for signs of life. It is pure. Time in which this process itself did not run, because it was suspended (Ctrl-Z) or starved, is no silence of
// the others.
type vigil struct {
	limit  time.Duration // of silence
	pause  time.Duration // between two looks, which normally come every beat: beyond it this process did not run
	looked time.Time
	last   []time.Time // sign of life, by rank; zero: not watched
}

func newVigil(beat time.Duration, ranks int, now time.Time) *vigil {
	return &vigil{limit: deadAfter * beat, pause: 2 * beat, looked: now, last: make([]time.Time, ranks)}
}

// heard notes a sign of life.
func (v *vigil) heard(rank int, now time.Time) { v.last[rank] = now }

// rest ends the watch over a rank that left.
func (v *vigil) rest(rank int) { v.last[rank] = time.Time{} }

// look returns the ranks that have been silent for too long.
func (v *vigil) look(now time.Time) (silent []int) {
	if gap := now.Sub(v.looked); gap > v.pause {
		for r := range v.last {
			if !v.last[r].IsZero() {
				v.last[r] = v.last[r].Add(min(gap, now.Sub(v.last[r])))
			}
		}
	}
	v.looked = now
	for r, at := range v.last {
		if !at.IsZero() && now.Sub(at) >= v.limit {
			silent = append(silent, r)
		}
	}
	return silent
}

// silent returns how long a rank has been silent.
func (v *vigil) silent(rank int, now time.Time) time.Duration {
	if v.last[rank].IsZero() {
		return 0
	}
	return max(0, now.Sub(v.last[rank]))
}
