package train

import (
	"fmt"
	"math"
	"testing"

	"github.com/gotrain/gotrain/optim"
)

// LAMB's norms belong to tensors, whatever buckets they lie in: the loss does not depend on how a global batch is divided, and a run that is stopped and
// resumed makes the steps of one that never stopped, bit by bit.
func TestLAMBOverRanksAndBuckets(t *testing.T) {
	src := images(t, 96)
	opts := func(ranks, accumulate int, mb float64, more ...Option) func(int) []Option {
		return func(int) []Option {
			return append(division(t, src, ranks, accumulate, mb), append(more, WithOptimizer(optim.Default(optim.LAMB, 0.02)), WithLR(0.02), WithClipNorm(1))...)
		}
	}
	want := runRanks(t, 1, opts(1, 1, 25))
	if want[11] > want[0]-0.1 {
		t.Fatalf("it does not learn: %v", want)
	}
	for _, c := range []struct {
		ranks, accumulate int
		mb                float64
	}{{1, 4, 0.0005}, {2, 1, 25}, {2, 2, 0.0005}, {4, 1, 0.002}} {
		got := runRanks(t, c.ranks, opts(c.ranks, c.accumulate, c.mb))
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= divisionBound) {
				t.Errorf("%+v: step %d: loss %.9g, want %.9g", c, i+1, got[i], want[i])
			}
		}
	}
	for _, device := range []string{"ref", "cpu"} {
		t.Run(fmt.Sprint("resumed on ", device), func(t *testing.T) {
			resumesAlike(t, 2, 5, func() []Option { return opts(2, 2, 0.002, WithDevice(device, 1))(0) })
		})
	}
}
