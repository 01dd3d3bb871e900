package usercache

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What a dead process left is removed once it is old; what is being written, what is kept, and what a link leads to stay.
func TestSweep(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{".new-1", ".new-young", ".probe-1", "kept.json", ".new-folder/fresh/a", filepath.Join(elsewhere, "a")} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, ".new-link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".new-1", ".probe-1", "kept.json", ".new-folder", ".new-link"} { // the link's target, that is
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(dir, ".new-", ".probe-")
	Sweep(filepath.Join(dir, "absent"), ".new-")
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".new-link", ".new-young", "kept.json"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q, want %q; %v", left, want, err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "a")); err != nil {
		t.Error(err)
	}
}
