package data

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Every folder here is in the program, whole: a set that is added is not forgotten, and no file hides behind a dot.
func TestEverySetIsEmbedded(t *testing.T) {
	onDisk := 0
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(name) == "." {
			return err
		}
		onDisk++
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		if in, err := fs.Stat(files, filepath.ToSlash(name)); err != nil || in.Size() != st.Size() {
			t.Errorf("%s is not in the program: %v", name, err)
		}
		return nil
	})
	if err != nil || onDisk < 400 {
		t.Errorf("%d files looked at, %v", onDisk, err)
	}
}
