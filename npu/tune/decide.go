package tune

import "time"

// Margin is the part of the time that a contestant must save to win over an earlier one of the list.
const Margin = 0.06

// doubt is how far from Margin a ratio of two best times must be after a few rounds so that more rounds cannot change the result.
const doubt = 0.1

// Timing is the best time of a contestant.
type Timing struct {
	Name string
	Best time.Duration
}

// Decide returns the winner's index: the first contestant, unless a later one is faster by Margin. A time of 0 means that the contestant did not run.
func Decide(ts []Timing) int {
	best := 0
	for i, t := range ts {
		if t.Best > 0 && (ts[best].Best == 0 || t.Best.Seconds() < (1-Margin)*ts[best].Best.Seconds()) {
			best = i
		}
	}
	return best
}

// clear reports whether every contestant is far from the point at which it would win or lose against the winner.
func clear(ts []Timing) bool {
	w := Decide(ts)
	for i, t := range ts {
		if i == w || t.Best == 0 {
			continue
		}
		early, late := ts[w].Best, t.Best // by their order in the list
		if i < w {
			early, late = late, early
		}
		if r := late.Seconds() / early.Seconds() / (1 - Margin); r > 1-doubt && r < 1+doubt {
			return false
		}
	}
	return true
}
