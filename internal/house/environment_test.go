package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`\bGOTRAIN_[A-Z0-9_]*[A-Z0-9]\b`)

// docs/environment.md lists every variable that the source reads or sets, and no others.
func TestEnvironmentIsDocumented(t *testing.T) {
	const root = "../.."
	used := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := e.Name(); e.IsDir() && (name != ".." && strings.HasPrefix(name, ".") || name == "runs" || name == "bin" || name == "docs") {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".sh", ".c", ".h"}, filepath.Ext(path)) || e.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, v := range variable.FindAllString(string(text), -1) {
			if v != "GOTRAIN_MASTER" && !strings.HasPrefix(v, "GOTRAIN_TEST_") { // a prefix; tests talk to their own processes
				used[v] = path
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "environment.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := variable.FindAllString(string(page), -1)
	for v, where := range used {
		if !slices.Contains(named, v) {
			t.Errorf("%s, used in %s, is not in docs/environment.md", v, where)
		}
	}
	for _, v := range named {
		if used[v] == "" {
			t.Errorf("docs/environment.md lists %s, which the source does not use", v)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d variables found", len(used))
	}
}
