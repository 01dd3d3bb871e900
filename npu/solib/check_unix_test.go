//go:build unix

package solib

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "a", "lib.so")
	link := filepath.Join(dir, "link.so")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o755), os.WriteFile(lib, nil, 0o644), os.Symlink(lib, link)); err != nil {
		t.Fatal(err)
	}
	if got, err := Check(link); err != nil || got != lib {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Check("libm.so.6"); err != nil || got != "libm.so.6" {
		t.Errorf("%s, %v", got, err)
	}
	for _, c := range []struct {
		at   string
		mode os.FileMode
		want string
	}{
		{lib, 0o666, lib + " can be written by every user"},
		{filepath.Dir(lib), 0o777, filepath.Dir(lib) + " can be written by every user"},
		{filepath.Dir(lib), 0o777 | os.ModeSticky, ""},
	} {
		old, err := os.Stat(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.at, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err = Check(link)
		if c.want == "" && err != nil ||
			c.want != "" && (!errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "hint: ")) {
			t.Errorf("%s with mode %v: %v, want %q", c.at, c.mode, err, c.want)
		}
		if err := os.Chmod(c.at, old.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Check(filepath.Join(dir, "none.so")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Check(dir); !errors.Is(err, ErrUntrusted) {
		t.Error(err)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		mode             fs.FileMode
		uid, gid, me, my int
		want             string
	}{
		{0o644, 0, 0, 1000, 1000, ""},
		{0o644, 1000, 1000, 1000, 1000, ""},
		{0o664, 1000, 1000, 1000, 1000, ""}, // the user's own group
		{0o664, 1000, 100, 1000, 100, "can be written by group 100"},
		{0o664, 0, 0, 1000, 1000, ""},
		{0o644, 1001, 1001, 1000, 1000, "belongs to user 1001"},
		{0o644, 1000, 1000, 0, 0, "belongs to user 1000"},
		{fs.ModeDir | fs.ModeSticky | 0o777, 0, 0, 1000, 1000, ""},
		{fs.ModeDir | 0o777, 0, 0, 1000, 1000, "can be written by every user"},
		{fs.ModeDir | fs.ModeSticky | 0o777, 1001, 0, 1000, 1000, "belongs to user 1001"},
	} {
		if got := judge(c.mode, c.uid, c.gid, c.me, c.my); got != c.want {
			t.Errorf("%v of %d:%d for %d:%d: %q, want %q", c.mode, c.uid, c.gid, c.me, c.my, got, c.want)
		}
	}
}
