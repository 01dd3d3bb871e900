package usercache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A place is made with its parents; one that is a file, a link, or open to others is refused.
func TestMake(t *testing.T) {
	base := filepath.Join(t.TempDir(), "cache")
	p := Place{Base: base, Own: []string{"gotrain", "data"}}
	for range 2 {
		if dir, err := p.Make(); err != nil || dir != filepath.Join(base, "gotrain", "data") {
			t.Fatalf("%s %v", dir, err)
		}
	}
	if _, err := (Place{Base: base, Err: fs.ErrInvalid}).Make(); err != fs.ErrInvalid {
		t.Errorf("a place that does not exist: %v", err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Place{Base: base, Own: []string{"file"}}).Make(); err == nil {
		t.Error("a file is no directory")
	}
	if dir, err := p.Find(); err != nil || dir != filepath.Join(base, "gotrain", "data") {
		t.Errorf("found %s %v", dir, err)
	}
	absent := Place{Base: base, Own: []string{"gotrain", "absent"}}
	if _, err := absent.Find(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found what is not there: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(base, "gotrain", "absent")); err == nil {
		t.Error("Find has made a folder")
	}
	if err := os.Chmod(filepath.Join(base, "gotrain"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Make(); err == nil {
		t.Error("others can write there")
	}
	if _, err := p.Find(); err == nil {
		t.Error("others can write there, and it is found")
	}
}
