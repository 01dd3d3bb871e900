package telemetry

import "slices"

// Window keeps the last 64 numbers added. The zero Window is empty and ready.
type Window struct {
	ring [64]float64
	n    int
}

// Add adds a number, in place of the oldest when the window is full.
func (w *Window) Add(x float64) {
	w.ring[w.n%len(w.ring)] = x
	w.n++
}

// Len is the number of values in the window.
func (w *Window) Len() int { return min(w.n, len(w.ring)) }

// Median is the median of the window; unknown if the window is empty.
func (w *Window) Median() Value {
	s := slices.Clone(w.ring[:w.Len()])
	if len(s) == 0 {
		return Value{}
	}
	slices.Sort(s)
	return Known((s[(len(s)-1)/2] + s[len(s)/2]) / 2)
}

// Mean is the mean of the window; false if the window is empty.
func (w *Window) Mean() (float64, bool) {
	sum := 0.0
	for _, x := range w.ring[:w.Len()] {
		sum += x
	}
	return sum / float64(max(w.Len(), 1)), w.n > 0
}
