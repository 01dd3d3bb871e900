package train

import (
	"os"
	"path/filepath"
	"testing"
)

// Ranks on several hosts need not share a file system: rank 0 alone reads and writes checkpoints and initial weights.
func TestOnlyRankZeroNeedsItsFiles(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		whole := t.TempDir()
		want, errs := together(t, ranks, func(int) []Option { return small(t, whole, 9) }, nil)
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		first, nowhere := t.TempDir(), filepath.Join(t.TempDir(), "host-without-the-files")
		dir := func(rank int) string {
			if rank == 0 {
				return first
			}
			return nowhere
		}
		stop := func(tr *Trainer, rank, step int) {
			if step == 5 && rank == ranks-1 {
				tr.Stop()
			}
		}
		together(t, ranks, func(rank int) []Option { return small(t, dir(rank), 9) }, stop)
		got, errs := together(t, ranks, func(rank int) []Option { return small(t, dir(rank), 9) }, nil)
		for r, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
			if got[r].Loss != want[r].Loss || got[r].Eval["loss"] != want[r].Eval["loss"] || got[r].Steps != 9 {
				t.Errorf("rank %d of %d: resumed %+v, never stopped %+v", r, ranks, got[r], want[r])
			}
		}
		if _, err := os.Stat(nowhere); err == nil {
			t.Errorf("a rank other than 0 made the folder of checkpoints")
		}
		from := func(rank int) []Option {
			return append(small(t, "", 3), func(c *Config) {
				c.SaveDir, c.SaveEvery, c.InitFrom = "", 0, dir(rank)
				if rank == 0 {
					c.InitFrom = newestOf(t, first)
				}
			})
		}
		if _, errs := together(t, ranks, from, nil); errs[ranks-1] != nil {
			t.Errorf("weights that only rank 0 has: %v", errs)
		}
	}
}

// newestOf is the folder of the newest checkpoint.
func newestOf(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "step-*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no checkpoint in %s: %v", dir, err)
	}
	return list[len(list)-1]
}
