package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// A data set in the program is found from anywhere, and only where nothing else has its name.
func TestBundle(t *testing.T) {
	t.Chdir(t.TempDir())
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // where this system's cache is elsewhere
	t.Setenv(PathVar, "")
	defer func(b []int) { bundles = bundles[:len(b)] }(make([]int, len(bundles)))
	Bundle(fstest.MapFS{"set-in-program/train/a.txt": {Data: []byte("inside")}, "README.md": {}})

	at, err := Locate("set-in-program/train")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "a.txt")); string(text) != "inside" || !strings.HasPrefix(at, cache) {
		t.Errorf("%s: %q, %v", at, text, err)
	}
	for _, name := range []string{"set-in-program/test", "README.md", ".", "other"} {
		if at, err := Locate(name); err == nil && name != "." {
			t.Errorf("%q is found at %s", name, at)
		} else if err != nil && !strings.Contains(err.Error(), "the data sets in the program: set-in-program") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := os.Mkdir("set-in-program", 0o700); err != nil {
		t.Fatal(err)
	}
	if at, err := Locate("set-in-program"); err != nil || strings.HasPrefix(at, cache) {
		t.Errorf("the data set beside is not preferred: %s, %v", at, err)
	}
}
