package faultfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build makes a directory, a synced file, a file of which a part is synced, and a rename that is not.
func build(t *testing.T) *FS {
	fs := New()
	must(t, fs.MkdirAll("/d"))
	must(t, fs.SyncDir("/"))
	for _, name := range []string{"safe", "half"} {
		f, err := fs.Create("/d/" + name)
		must(t, err)
		_, err = f.Write([]byte("0123"))
		must(t, err)
		must(t, f.Sync())
		if name == "half" {
			_, err = f.Write([]byte("4567"))
			must(t, err)
		}
		must(t, f.Close())
	}
	must(t, fs.SyncDir("/d"))
	must(t, fs.Rename("/d/safe", "/d/moved"))
	return fs
}

func look(t *testing.T, fs *FS) string {
	var out []string
	for _, name := range fs.Files() {
		f, err := fs.Open(name)
		must(t, err)
		b := make([]byte, f.Size())
		_, err = f.ReadAt(b, 0)
		must(t, err)
		out = append(out, fmt.Sprintf("%s=%s", strings.TrimPrefix(name, "/d/"), strings.ReplaceAll(string(b), "\x00", "_")))
	}
	return strings.Join(out, " ")
}

func TestRebootKeepsWhatWasSyncedAndNoMore(t *testing.T) {
	fs := build(t)
	if got, want := look(t, fs.Reboot(0)), "half=0123 safe=0123"; got != want {
		t.Errorf("the least is %s, want %s", got, want)
	}
	if got, want := look(t, fs.Reboot(1)), "half=01234567 moved=0123"; got != want {
		t.Errorf("the most is %s, want %s", got, want)
	}
	seen := map[string]bool{}
	for seed := range uint64(200) {
		got := look(t, fs.Reboot(seed))
		if got != look(t, fs.Reboot(seed)) {
			t.Fatalf("seed %d is not always the same", seed)
		}
		seen[got] = true
	}
	if !seen["half=012345__ moved=0123"] || !seen["half=01234 safe=0123"] || len(seen) < 10 {
		t.Errorf("200 seeds give %d ends: %v", len(seen), seen)
	}
}

func TestCrashStopsEverything(t *testing.T) {
	fs := build(t)
	n := len(fs.Trace)
	fs.CrashAt(2, 1)
	must(t, fs.MkdirAll("/a"))
	f, err := fs.Create("/a/x")
	if f != nil || !errors.Is(err, ErrCrash) || len(fs.Trace) != n+2 {
		t.Errorf("the second operation: %v", err)
	}
	_, errRead := fs.ReadDir("/")
	_, errOpen := fs.Open("/d/half")
	for i, err := range []error{errRead, errOpen, fs.RemoveAll("/d"), fs.MkdirAll("/b"), fs.Rename("/d/half", "/d/x"), fs.SyncDir("/d")} {
		if !errors.Is(err, ErrCrash) {
			t.Errorf("operation %d after the crash: %v", i, err)
		}
	}
}

func TestFaultsAndKinds(t *testing.T) {
	fs := build(t)
	var kinds []string
	for _, op := range fs.Trace {
		kinds = append(kinds, op.Kind)
	}
	if want := strings.Fields("mkdir syncdir create write sync create write sync write syncdir rename"); !slices.Equal(kinds, want) {
		t.Errorf("trace is %v, want %v", kinds, want)
	}
	full := errors.New("full")
	fs.Fault = func(op Op) error {
		if op.Kind == "write" {
			return full
		}
		return nil
	}
	f, err := fs.Create("/d/y")
	must(t, err)
	if n, err := f.Write([]byte("1234")); n != 2 || !errors.Is(err, full) {
		t.Errorf("wrote %d, %v", n, err)
	}
	must(t, fs.RemoveAll("/d"))
	if got := fs.Files(); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
}
