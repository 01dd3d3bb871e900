package checkpoint_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/faultfs"
)

// At whatever point of a save the directory gets another owner, the save writes nothing more there, keeps what exists, and reports why it failed.
func TestGuard(t *testing.T) {
	lost := errors.New("lost")
	for n := 0; ; n++ {
		fs := faultfs.New()
		save(t, fs, 1, 2)
		asked, at := 0, 0
		guard := checkpoint.Guard(fs, func() error {
			if asked++; asked > n {
				if at == 0 {
					at = len(fs.Trace)
				}
				return lost
			}
			return nil
		})
		before := fs.Files()
		saved, err := checkpoint.New(guard, root, 2).Save(ctx, content(3, "new"))
		if err == nil && saved.Warning == nil {
			if n < 8 {
				t.Fatalf("a save asks only %d times", n)
			}
			break
		}
		if !errors.Is(err, lost) && !errors.Is(saved.Warning, lost) {
			t.Fatalf("question %d: %v, %v", n, err, saved.Warning)
		}
		for _, op := range fs.Trace[at:] {
			if op.Kind != "write" && op.Kind != "sync" && op.Kind != "syncdir" { // of a file that is open already
				t.Errorf("question %d: %v after the loss", n, op)
			}
		}
		if err != nil {
			for _, f := range before {
				if !slices.Contains(fs.Files(), f) {
					t.Errorf("question %d: %s is gone", n, f)
				}
			}
		}
	}
}
