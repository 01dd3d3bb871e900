package tune

import (
	"testing"
	"time"
)

// A contestant must be clearly faster than those before it; what did not run cannot win.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		ms    []int
		want  int
		clear bool
	}{
		{[]int{100}, 0, true},
		{[]int{100, 100}, 0, false},
		{[]int{100, 95}, 0, false},
		{[]int{100, 93}, 1, false},
		{[]int{100, 60}, 1, true},
		{[]int{100, 160}, 0, true},
		{[]int{100, 60, 58}, 1, false},
		{[]int{100, 60, 40}, 2, true},
		{[]int{100, 80, 77, 74}, 3, false}, // not compared with the first alone
		{[]int{0, 80}, 1, true},
		{[]int{100, 0}, 0, true},
	} {
		var ts []Timing
		for _, ms := range c.ms {
			ts = append(ts, Timing{Best: time.Duration(ms) * time.Millisecond})
		}
		if got := Decide(ts); got != c.want {
			t.Errorf("%v: %d wins, want %d", c.ms, got, c.want)
		}
		if got := clear(ts); got != c.clear {
			t.Errorf("%v: clear %v", c.ms, got)
		}
	}
}
