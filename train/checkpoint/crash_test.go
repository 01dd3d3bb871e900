package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/faultfs"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

var ctx = context.Background()

const root = "/runs/x/checkpoints"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content is a small checkpoint whose every byte depends on tag.
func content(step int64, tag string) checkpoint.Content {
	fill := func(t safetensors.Tensor, w io.Writer) error {
		_, err := w.Write(bytesOf(t, tag))
		return err
	}
	return checkpoint.Content{
		State: checkpoint.State{Step: step, Version: "test", Recipe: tag},
		Files: []checkpoint.TensorFile{
			{Name: checkpoint.ModelFile, Data: fill, Tensors: []safetensors.Tensor{
				{Name: "w", DType: safetensors.F32, Shape: []int64{5, 4}}, {Name: "b", DType: safetensors.F32, Shape: []int64{5}}}},
			{Name: checkpoint.OptimizerFile, Data: fill, Tensors: []safetensors.Tensor{{Name: "momentum/w", DType: safetensors.F32, Shape: []int64{5, 4}}}},
		},
	}
}

func bytesOf(t safetensors.Tensor, tag string) []byte {
	out := make([]byte, t.Bytes())
	for i := range out {
		out[i] = tag[i%len(tag)] ^ byte(i) ^ t.Name[0]
	}
	return out
}

// check verifies that an open checkpoint is the one that content made.
func check(t testing.TB, c *checkpoint.Checkpoint, step int64, tag string) {
	t.Helper()
	if c.Step != step || c.State.Step != step || c.State.Recipe != tag {
		t.Fatalf("got step %d (state %d, %q), want %d (%q)", c.Step, c.State.Step, c.State.Recipe, step, tag)
	}
	for _, f := range content(step, tag).Files {
		for _, ten := range f.Tensors {
			got, err := c.File(f.Name).Bytes(ten.Name)
			must(t, err)
			if !bytes.Equal(got, bytesOf(ten, tag)) {
				t.Fatalf("%s of step %d differs from what was saved", ten.Name, step)
			}
		}
	}
}

func save(t testing.TB, fs checkpoint.FS, steps ...int64) *checkpoint.Store {
	t.Helper()
	s := checkpoint.New(fs, root, 2)
	for _, n := range steps {
		got, err := s.Save(ctx, content(n, fmt.Sprint("run", n)))
		must(t, err)
		must(t, got.Warning)
	}
	return s
}

// crashes stops a third Save at every operation, reboots with 10 seeds each, and counts the outcomes.
func crashes(wrap func(*faultfs.FS) checkpoint.FS) (old, fresh int, faults []string) {
	for n := 1; ; n++ {
		reached := false
		for seed := range uint64(10) {
			fs := faultfs.New()
			s := checkpoint.New(wrap(fs), root, 2)
			for step := range int64(2) {
				if _, err := s.Save(ctx, content(step+1, "old")); err != nil {
					return 0, 0, []string{err.Error()}
				}
			}
			before := len(fs.Trace)
			fs.CrashAt(n, seed)
			_, saveErr := s.Save(ctx, content(3, "new"))
			reached = reached || len(fs.Trace)-before >= n
			where := fmt.Sprintf("crash at %v, seed %d", fs.Trace[len(fs.Trace)-1], seed)
			after := fs.Reboot(seed)
			step, err := examine(after)
			switch {
			case err != nil:
				faults = append(faults, fmt.Sprintf("%s: %v", where, err))
			case step == 2 && saveErr == nil:
				faults = append(faults, where+": Save said it was safe, and it is gone")
			case step == 2:
				old++
			case step == 3:
				fresh++
			}
		}
		if !reached {
			return old, fresh, faults
		}
	}
}

// examine opens the newest checkpoint, compares it, and continues from there as a restarted run would.
func examine(fs *faultfs.FS) (int64, error) {
	s := checkpoint.New(fs, root, 2)
	c, _, err := s.Latest(ctx)
	if err != nil {
		return 0, err
	}
	tag := map[int64]string{2: "old", 3: "new"}[c.Step]
	if c.State.Recipe != tag || tag == "" {
		return 0, fmt.Errorf("step %d has the state %q", c.Step, c.State.Recipe)
	}
	for _, f := range content(c.Step, tag).Files {
		for _, ten := range f.Tensors {
			if got, err := c.File(f.Name).Bytes(ten.Name); err != nil || !bytes.Equal(got, bytesOf(ten, tag)) {
				return 0, fmt.Errorf("%s differs (%v)", ten.Name, err)
			}
		}
	}
	if _, err := s.Save(ctx, content(4, "next")); err != nil {
		return 0, fmt.Errorf("the next save: %w", err)
	}
	for _, name := range fs.Files() {
		if strings.Contains(name, ".tmp") {
			return 0, fmt.Errorf("the next save left %s", name)
		}
	}
	next, _, err := s.Latest(ctx)
	if err != nil || next.Step != 4 {
		return 0, fmt.Errorf("the next save cannot be found: %v", err)
	}
	return c.Step, nil
}

func TestCrashAtAnyOperation(t *testing.T) {
	old, fresh, faults := crashes(func(fs *faultfs.FS) checkpoint.FS { return fs })
	for i, f := range faults {
		if i == 5 {
			t.Errorf("… %d more", len(faults)-5)
			break
		}
		t.Error(f)
	}
	t.Logf("%d crashes left the old checkpoint, %d the new one", old, fresh)
	if old < 50 || fresh < 50 {
		t.Error("the test does not see both ends")
	}
}

// The crash test must be able to fail: without any one of the three kinds of sync, it detects a loss.
func TestCrashTestHasTeeth(t *testing.T) {
	for name, wrap := range map[string]func(*faultfs.FS) checkpoint.FS{
		"files are not synced":       func(fs *faultfs.FS) checkpoint.FS { return lazy{fs, false, true} },
		"directories are not synced": func(fs *faultfs.FS) checkpoint.FS { return lazy{fs, true, false} },
	} {
		if _, _, faults := crashes(wrap); len(faults) == 0 {
			t.Errorf("%s, and no crash does harm", name)
		}
	}
}

type lazy struct {
	*faultfs.FS
	files, dirs bool
}

type lazyFile struct{ checkpoint.File }

func (lazyFile) Sync() error { return nil }

func (l lazy) Create(name string) (checkpoint.File, error) {
	f, err := l.FS.Create(name)
	if err != nil || l.files {
		return f, err
	}
	return lazyFile{f}, nil
}

func (l lazy) SyncDir(name string) error {
	if l.dirs {
		return l.FS.SyncDir(name)
	}
	return nil
}

// A crash in the very first save leaves nothing or a whole checkpoint, never something in between.
func TestCrashInTheFirstSave(t *testing.T) {
	for n := 1; n < 40; n++ {
		for seed := range uint64(6) {
			fs := faultfs.New()
			fs.CrashAt(n, seed)
			_, saveErr := checkpoint.New(fs, root, 2).Save(ctx, content(1, "first"))
			c, _, err := checkpoint.New(fs.Reboot(seed), root, 2).Latest(ctx)
			if err == nil {
				check(t, c, 1, "first")
			} else if !errors.Is(err, checkpoint.ErrNone) || saveErr == nil {
				t.Fatalf("crash at %d, seed %d: save %v, latest %v", n, seed, saveErr, err)
			}
		}
	}
}

// Whichever byte of whichever file is damaged or missing, the loader detects it and falls back.
func TestAnyDamageIsSeen(t *testing.T) {
	fs := faultfs.New()
	save(t, fs, 1, 2)
	bad := 0
	for _, name := range fs.Files() {
		if !strings.Contains(name, "step-00000002/") {
			continue
		}
		var good []byte
		must(t, fs.Corrupt(name, func(b []byte) []byte { good = slices.Clone(b); return b }))
		for i := range good {
			for what, b := range map[string][]byte{"flipped": slices.Concat(good[:i], []byte{good[i] ^ 0x10}, good[i+1:]), "cut": good[:i]} {
				must(t, fs.Corrupt(name, func([]byte) []byte { return b }))
				c, r, err := checkpoint.New(fs, root, 2).Latest(ctx)
				must(t, err)
				if c.Step == 2 { // what is the same JSON: the new line at the end
					if !strings.HasSuffix(name, checkpoint.ManifestFile) || i < len(good)-1 {
						t.Fatalf("%s %s at %d is not seen", name, what, i)
					}
					continue
				}
				check(t, c, 1, "run1")
				if !r.FellBack() {
					t.Fatalf("%s %s at %d: fell back without saying so", name, what, i)
				}
				bad++
			}
		}
		must(t, fs.Corrupt(name, func([]byte) []byte { return good }))
	}
	if bad < 1000 {
		t.Errorf("only %d damages tried", bad)
	}
}

func TestFullDisk(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	before := fs.Files()
	from := len(fs.Trace)
	save(t, fs, 3)
	ops := len(fs.Trace) - from
	for n := 1; n <= ops; n++ {
		fs := faultfs.New()
		s := save(t, fs, 1, 2)
		at := len(fs.Trace) + n
		fs.Fault = func(op faultfs.Op) error {
			if op.N >= at && (op.Kind == "write" || op.Kind == "create" || op.Kind == "sync" || op.Kind == "mkdir") {
				return syscall.ENOSPC
			}
			return nil
		}
		saved, err := s.Save(ctx, content(3, "new"))
		fs.Fault = nil
		if err == nil {
			if saved.Warning != nil && !errors.Is(saved.Warning, checkpoint.ErrNoSpace) {
				t.Errorf("full from operation %d on: warning %v", n, saved.Warning)
			}
			c, _, err := s.Latest(ctx)
			must(t, err)
			check(t, c, 3, "new")
			continue
		}
		var se *checkpoint.SaveError
		if !errors.As(err, &se) || se.Step != 3 || !errors.Is(err, checkpoint.ErrNoSpace) || !strings.Contains(err.Error(), "hint: free space") {
			t.Errorf("full from operation %d on: error %v", n, err)
		}
		if got := fs.Files(); !slices.Equal(got, before) {
			t.Errorf("full from operation %d on: files are %v, want %v", n, got, before)
		}
	}

	fs.FreeBytes = 1000
	from = len(fs.Trace)
	_, err := s.Save(ctx, content(4, "new"))
	if !errors.Is(err, checkpoint.ErrNoSpace) || !strings.Contains(err.Error(), " are free") {
		t.Errorf("1000 bytes free: error %v", err)
	}
	if len(fs.Trace) != from {
		t.Errorf("1000 bytes free, and still: %v", fs.Trace[from:])
	}
}
