package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	mk := func(parts ...string) string {
		dir := filepath.Join(parts...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	near, env, cwd := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(mk(cwd, "deep", "er"))
	t.Setenv(PathVar, env)

	is := func(name, want string, near ...string) {
		t.Helper()
		got, err := Locate(name, near...)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := os.Stat(got)
		b, err := os.Stat(want)
		if err != nil || !os.SameFile(a, b) {
			t.Errorf("Locate(%q) = %s, want %s", name, got, want)
		}
	}
	// From the least to the most preferred place.
	is("flowers", mk(cwd, "recipes", "data", "flowers")) // the tree that holds the working directory
	is("flowers", mk(cwd, "deep", "er", "recipes", "data", "flowers"))
	is("flowers", mk(cwd, "deep", "er", "data", "flowers"))
	is("flowers", mk(cwd, "deep", "er", "flowers"))
	is("flowers", mk(env, "flowers"))
	is("flowers", mk(near, "data", "flowers"), near)
	is("flowers", mk(near, "flowers"), near)

	abs := mk(near, "abs")
	is(abs, abs)
	is("./flowers", filepath.Join(cwd, "deep", "er", "flowers"))
	for _, name := range []string{"", filepath.Join(abs, "nowhere"), "../nowhere"} {
		if _, err := Locate(name, near); err == nil {
			t.Errorf("%q is found", name)
		}
	}
	_, err := Locate("no/such-set", near)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{filepath.Join(near, "no", "such-set"), filepath.Join(env, "no", "such-set"), "recipes", "hint:", PathVar} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}
