package predict

import (
	"slices"
	"testing"
)

// A batch between two sizes is filled up if a quarter of it or less stays empty, otherwise the smaller one is computed and the rest waits.
func TestChoose(t *testing.T) {
	all := sizes(32)
	if !slices.Equal(all, []int{1, 2, 4, 8, 16, 32}) || !slices.Equal(sizes(12), []int{1, 2, 4, 8, 12}) || !slices.Equal(sizes(1), []int{1}) {
		t.Fatal(all, sizes(12), sizes(1))
	}
	for waiting, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 4, 6: 8, 9: 8, 11: 8, 12: 16, 17: 16, 23: 16, 24: 32, 32: 32, 40: 32} {
		if got := choose(all, waiting); got != want {
			t.Errorf("%d wait: a batch of %d, want %d", waiting, got, want)
		}
	}
}
