package foreign_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/foreign"
)

// Folders and files that exist are taken as they are written, and the rest of a path is a pattern.
func TestGlob(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a [b]/x-1.bin", "a [b]/x-2.bin", "a b/x-3.bin", "a [b]/[1].bin", "a [b]/1.bin", "s*r/x.bin", "star/x.bin", `c\d/x.bin`} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"a [b]/x-*.bin":  {"a [b]/x-1.bin", "a [b]/x-2.bin"},
		"a [b]/[1].bin":  {"a [b]/[1].bin"},
		"a [b]/[12].bin": {"a [b]/1.bin"},
		"a*/x-*.bin":     {"a [b]/x-1.bin", "a [b]/x-2.bin", "a b/x-3.bin"},
		"s*r/*":          {"s*r/x.bin"},
		`c\d/*.bin`:      {`c\d/x.bin`},
		"none/*.bin":     nil,
		"a b/../a b/x*":  {"a b/x-3.bin"},
	} {
		for _, relative := range []bool{false, true} {
			at := root + "/"
			if relative {
				t.Chdir(root)
				at = ""
			}
			got, err := foreign.Glob(at + pattern)
			var names []string
			for _, w := range want {
				names = append(names, at+w)
			}
			if err != nil || !slices.Equal(got, names) {
				t.Errorf("%s: %q, want %q; %v", at+pattern, got, names, err)
			}
		}
	}
	if _, err := foreign.Glob(root + "/[a"); err == nil {
		t.Error("a bad pattern is no error")
	}
}
