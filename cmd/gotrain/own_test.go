package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/dirlock"
)

// A run in the folder of another one ends at once, says whose it is, and has written nothing.
func TestRunInAFolderInUse(t *testing.T) {
	dir, recipe := t.TempDir(), filepath.Join(t.TempDir(), "r.toml")
	text := `
[run]
steps = 1
[model]
depth = 18
width = 4
small_stem = true
classes = 4
[data]
kind = "synthetic"
image_size = 16
synthetic_samples = 10
synthetic_eval_samples = 3
[train]
batch_per_rank = 4
`
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lock, err := dirlock.Take(context.Background(), dir, dirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "run", recipe, "--ranks", ranks, "--set", "run.output_dir="+dir)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitInUse || !strings.Contains(string(out), "is in use by another run, process ") {
			t.Errorf("%s ranks: exit code %d\n%s", ranks, code, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	// Checkpoints in the output folder itself have one owner too: this run.
	out, err := program(t, "run", recipe, "--ranks", "1", "--set", "run.output_dir="+dir, "--set", "checkpoint.dir="+dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "step-00000001")); err != nil {
		t.Error(err)
	}
}
