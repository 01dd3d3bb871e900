package generate

import (
	"testing"
	"time"
)

// Slow models report every token, fast ones a few at a time.
func TestTogether(t *testing.T) {
	for step, want := range map[time.Duration]int{0: mostSteps, 200 * time.Microsecond: mostSteps, time.Millisecond: 4, 3 * time.Millisecond: 1, time.Second: 1} {
		if got := together(step); got != want {
			t.Errorf("together(%v) = %d, want %d", step, got, want)
		}
	}
}
