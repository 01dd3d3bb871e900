package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
)

var tree = fstest.MapFS{
	"README.md":     {Data: []byte("a set of two\n")},
	"train/a/1.jpg": {Data: []byte("one")},
	"train/b/2.jpg": {Data: []byte("two")},
}

func at(t *testing.T) (usercache.Place, string) {
	base := t.TempDir()
	return usercache.Place{Base: base, Own: []string{"gotrain", "data"}}, filepath.Join(base, "gotrain", "data")
}

func unpacked(t *testing.T, p ...usercache.Place) string {
	t.Helper()
	dir, err := within(p, "set", tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(dir, tree); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Nothing but the folder remains, also of a process that died while it unpacked, and only the user can read or write it.
func TestUnpack(t *testing.T) {
	p, root := at(t)
	left := filepath.Join(root, ".new-1")
	if err := os.MkdirAll(filepath.Join(left, "fresh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{root, filepath.Dir(root)} {
		if err := os.Chmod(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	dir := unpacked(t, p)
	if got, want := filepath.Dir(dir), root; got != want || !strings.HasPrefix(filepath.Base(dir), "set-") {
		t.Errorf("unpacked to %s, want it below %s", dir, want)
	}
	if again := unpacked(t, p); again != dir {
		t.Errorf("the second time to %s, the first to %s", again, dir)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, d := range []string{root, filepath.Dir(root)} {
		if st, err := os.Stat(d); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, st.Mode(), err)
		}
	}
}

// Whatever happened to the folder, the next process has the right files.
func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"changed": func(d string) error {
			return os.WriteFile(filepath.Join(d, "README.md"), []byte("a set of 2!!\n"), 0o600)
		},
		"cut":       func(d string) error { return os.Truncate(filepath.Join(d, "train/a/1.jpg"), 1) },
		"missing":   func(d string) error { return os.RemoveAll(filepath.Join(d, "train/b")) },
		"surplus":   func(d string) error { return os.WriteFile(filepath.Join(d, "train/b/3.jpg"), nil, 0o600) },
		"no folder": func(d string) error { return errors.Join(os.RemoveAll(d), os.WriteFile(d, nil, 0o600)) },
		"link": func(d string) error {
			f := filepath.Join(d, "train/a/1.jpg")
			return errors.Join(os.Rename(f, d+".jpg"), os.Symlink(d+".jpg", f))
		},
		"a file where a folder was": func(d string) error {
			f := filepath.Join(d, "train/a")
			return errors.Join(os.RemoveAll(f), os.WriteFile(f, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := at(t)
			dir := unpacked(t, p)
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if err := same(dir, tree); !errors.Is(err, errDiffers) {
				t.Fatalf("the damage is not seen: %v", err)
			}
			if again := unpacked(t, p); again != dir {
				t.Errorf("unpacked to %s, then to %s", dir, again)
			}
		})
	}
}

// Several processes at once: all of them end with the same, whole folder.
func TestAtOnce(t *testing.T) {
	p, root := at(t)
	const n = 16
	var dirs [n]string
	var errs [n]error
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { dirs[i], errs[i] = within([]usercache.Place{p}, "set", tree) })
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil || dirs[i] != dirs[0] {
			t.Errorf("%s, %v", dirs[i], errs[i])
		}
	}
	if err := same(dirs[0], tree); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(root); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A place that cannot be used is passed over, and an error says why none can.
func TestPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open, openRoot := at(t)
	if err := errors.Join(os.MkdirAll(openRoot, 0o700), os.Chmod(filepath.Dir(openRoot), 0o777)); err != nil {
		t.Fatal(err)
	}
	linked, _ := at(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(linked.Base, "gotrain")); err != nil {
		t.Fatal(err)
	}
	bad := []usercache.Place{{Err: fs.ErrInvalid}, {Base: filepath.Join(file, "cache")}, open, linked}
	good, root := at(t)
	if dir := unpacked(t, append(bad, good)...); filepath.Dir(dir) != root {
		t.Errorf("unpacked to %s", dir)
	}
	_, err := within(bad, "set", tree)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"invalid", "not a directory", "is writable by others (mode 0777)", "hint:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// Another version of a set is another folder.
func TestVersions(t *testing.T) {
	p, _ := at(t)
	dir := unpacked(t, p)
	other, err := within([]usercache.Place{p}, "set", fstest.MapFS{"README.md": {Data: []byte("another\n")}})
	if err != nil || other == dir {
		t.Errorf("%s and %s, %v", dir, other, err)
	}
	if err := same(dir, tree); err != nil {
		t.Error(err)
	}
}
