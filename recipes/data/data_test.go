package data

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Every folder here is embedded completely: no new data set is forgotten, and no file is skipped because its name begins with a dot.
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
			t.Errorf("%s is not embedded: %v", name, err)
		}
		return nil
	})
	if err != nil || onDisk < 400 {
		t.Errorf("%d files checked, %v", onDisk, err)
	}
}
