package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
)

// Every path that stands for a checkpoint leads to it, and of several the newest good one is opened.
func TestOpenAt(t *testing.T) {
	run := t.TempDir()
	dir := filepath.Join(run, "checkpoints")
	s := checkpoint.New(checkpoint.OS{}, dir, 0)
	for step := range int64(3) {
		_, err := s.Save(t.Context(), content(step+1, "x"))
		must(t, err)
	}
	must(t, s.MarkBest("step-00000001"))
	must(t, os.Truncate(filepath.Join(dir, "step-00000003", checkpoint.ModelFile), 3))
	t.Chdir(run)
	for path, want := range map[string]struct {
		name           string
		single, fellTo bool
	}{
		run:                         {"step-00000002", false, true},
		".":                         {"step-00000002", false, true},
		dir:                         {"step-00000002", false, true},
		"checkpoints":               {"step-00000002", false, true},
		filepath.Join(dir, "best"):  {"step-00000001", true, false},
		"checkpoints/step-00000002": {"step-00000002", true, false},
	} {
		_, single := checkpoint.Resolve(path)
		c, report, err := checkpoint.OpenAt(t.Context(), checkpoint.OS{}, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		must(t, c.Close())
		if c.Path != filepath.Join(dir, want.name) || single != want.single || report.FellBack() != want.fellTo {
			t.Errorf("%s: %s, one: %t, %+v", path, c.Path, single, report)
		}
	}
	if _, _, err := checkpoint.OpenAt(t.Context(), checkpoint.OS{}, "checkpoints/latest"); err == nil {
		t.Error("a damaged checkpoint that is named is opened")
	}
	// A folder of that name without checkpoints belongs to something else.
	other := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(other, "checkpoints", "figures"), 0o755))
	if at, single := checkpoint.Resolve(other); at != other || single {
		t.Errorf("%s %t", at, single)
	}
	if _, _, err := checkpoint.OpenAt(t.Context(), checkpoint.OS{}, other); !errors.Is(err, checkpoint.ErrNone) {
		t.Error(err)
	}
}
