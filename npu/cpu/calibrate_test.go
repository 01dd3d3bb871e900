//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"testing"
	"time"
)

// Rounds that others disturb do not decide: measuring ends only when it has become no faster for a while, or has taken long enough.
func TestBestRound(t *testing.T) {
	rounds := func(ms ...int) (time.Duration, int) {
		n := 0
		best, err := bestRound(func() (time.Duration, error) {
			took := ms[min(n, len(ms)-1)]
			n++
			return time.Duration(took) * time.Millisecond, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return best, n
	}
	if best, n := rounds(5); best != 5*time.Millisecond || n != calmRounds {
		t.Errorf("a quiet machine: %v after %d rounds", best, n)
	}
	if best, _ := rounds(9, 9, 9, 9, 8, 9, 9, 9, 9, 5, 9); best != 5*time.Millisecond {
		t.Errorf("a busy machine: %v", best)
	}
	if best, n := rounds(1000, 900, 800, 700, 600, 500, 400); best != 500*time.Millisecond || n != calmRounds {
		t.Errorf("a slow machine: %v after %d rounds", best, n)
	}
	if _, err := bestRound(func() (time.Duration, error) { return 0, errors.New("x") }); err == nil {
		t.Error("an error is lost")
	}
}
