package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
)

// Rotation keeps the checkpoint that is marked as the best, until another one is.
func TestBestOutlivesRotation(t *testing.T) {
	dir := t.TempDir()
	s := checkpoint.New(checkpoint.OS{}, dir, 2)
	put := func(step int64) {
		t.Helper()
		_, err := s.Save(t.Context(), content(step, "x"))
		must(t, err)
	}
	if best, err := s.Best(); best != "" || err != nil {
		t.Errorf("an empty folder: %q %v", best, err)
	}
	put(1)
	put(2)
	must(t, s.MarkBest("step-00000001"))
	put(3)
	put(4)
	if got, want := names(t, s), "4 3 1"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	must(t, s.MarkBest("step-00000004"))
	put(5)
	put(6)
	if got, want := names(t, s), "6 5 4"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if err := s.MarkBest("step-00000001"); err == nil {
		t.Error("marked a checkpoint that is gone")
	}
	for _, file := range []string{"best", "latest"} {
		want := filepath.Join(dir, map[string]string{"best": "step-00000004", "latest": "step-00000006"}[file])
		if got, single := checkpoint.Resolve(filepath.Join(dir, file)); got != want || !single {
			t.Errorf("%s leads to %s, want %s", file, got, want)
		}
	}
}

// A file that holds no name is no pointer, and keeps nothing.
func TestBestIsNoName(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "best")
	for _, text := range []string{"", "../etc", "step-1", "step-00000001/../x", string(make([]byte, 5000))} {
		must(t, os.WriteFile(at, []byte(text), 0o644))
		if best, err := checkpoint.New(checkpoint.OS{}, dir, 2).Best(); best != "" || err != nil {
			t.Errorf("%.20q: %q %v", text, best, err)
		}
		if got, single := checkpoint.Resolve(at); got != at || single {
			t.Errorf("%.20q leads to %s", text, got)
		}
	}
	for _, path := range []string{filepath.Join(dir, "missing", "best"), dir} {
		if got, single := checkpoint.Resolve(path); got != path || single {
			t.Errorf("%s leads to %s", path, got)
		}
	}
}
