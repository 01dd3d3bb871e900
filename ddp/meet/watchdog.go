package meet

import "time"

// watchdog watches for signs of life. It is pure. Time in which this process itself did not run, because it was suspended (Ctrl-Z) or starved, is no silence of
// the others.
type watchdog struct {
	limit  time.Duration // of silence
	pause  time.Duration // between two looks, which normally come every beat: beyond it this process did not run
	looked time.Time
	last   []time.Time // sign of life, by rank; zero: not watched
}

func newWatchdog(beat time.Duration, ranks int, now time.Time) *watchdog {
	return &watchdog{limit: deadAfter * beat, pause: 2 * beat, looked: now, last: make([]time.Time, ranks)}
}

// heard notes a sign of life.
func (w *watchdog) heard(rank int, now time.Time) { w.last[rank] = now }

// rest ends the watch over a rank that left.
func (w *watchdog) rest(rank int) { w.last[rank] = time.Time{} }

// look returns the ranks that have been silent for too long.
func (w *watchdog) look(now time.Time) (silent []int) {
	if gap := now.Sub(w.looked); gap > w.pause {
		for r := range w.last {
			if !w.last[r].IsZero() {
				w.last[r] = w.last[r].Add(min(gap, now.Sub(w.last[r])))
			}
		}
	}
	w.looked = now
	for r, at := range w.last {
		if !at.IsZero() && now.Sub(at) >= w.limit {
			silent = append(silent, r)
		}
	}
	return silent
}

// silent returns how long a rank has been silent.
func (w *watchdog) silent(rank int, now time.Time) time.Duration {
	if w.last[rank].IsZero() {
		return 0
	}
	return max(0, now.Sub(w.last[rank]))
}
