package checkpoint_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/faultfs"
)

// A checkpoint that cannot be read for a while is kept, whichever file and operation fails, and counts again once it can be read.
func TestPassingReadErrorCostsNothing(t *testing.T) {
	newest := filepath.Join(root, "step-00000002")
	for _, c := range []struct {
		name, kind, file string
		err              error
	}{
		{"manifest does not open", "open", checkpoint.ManifestFile, syscall.EIO},
		{"manifest does not read", "read", checkpoint.ManifestFile, syscall.EIO},
		{"stale handle", "read", checkpoint.ManifestFile, syscall.ESTALE},
		{"weights do not open", "open", checkpoint.ModelFile, syscall.EIO},
		{"state does not read", "read", checkpoint.StateFile, syscall.EIO},
		{"no descriptors left", "open", checkpoint.ManifestFile, syscall.EMFILE},
		{"no permission", "open", checkpoint.ManifestFile, syscall.EACCES},
		{"the network is gone", "open", checkpoint.ModelFile, syscall.ETIMEDOUT},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := faultfs.New()
			s := save(t, fs, 1, 2)
			fs.ReadFault = func(kind, path string) error {
				if kind == c.kind && path == filepath.Join(newest, c.file) {
					return c.err
				}
				return nil
			}
			// It is found, examined and skipped.
			ck, report, err := s.Latest(ctx)
			must(t, err)
			if ck.Step != 1 || !report.FellBack() || errors.Is(report.Skipped[0].Reason, checkpoint.ErrDamaged) {
				t.Errorf("step %d, %v", ck.Step, report)
			}
			must(t, ck.Close())
			// The next save rotates around it.
			saved, err := s.Save(ctx, content(3, "later"))
			must(t, err)
			must(t, saved.Warning)
			if slices.Contains(saved.Removed, "step-00000002") {
				t.Fatal("the checkpoint that could not be read was removed")
			}
			fs.ReadFault = nil
			ck, err = s.Load(ctx, "step-00000002")
			must(t, err)
			check(t, ck, 2, "run2")
			must(t, ck.Close())
			// The newest is the one saved last, though the other's number was unknown then.
			ck, _, err = s.Latest(ctx)
			must(t, err)
			check(t, ck, 3, "later")
			must(t, ck.Close())
		})
	}
}

// An error that disappears on the next try goes unnoticed.
func TestOneReadErrorIsTriedAgain(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	failed := map[string]bool{}
	fs.ReadFault = func(kind, path string) error {
		if kind != "readdir" && !failed[kind+path] && strings.Contains(path, "step-00000002") && !strings.HasSuffix(path, checkpoint.EvaluationFile) {
			failed[kind+path] = true
			return syscall.EIO
		}
		return nil
	}
	ck, report, err := s.Latest(ctx)
	must(t, err)
	check(t, ck, 2, "run2")
	if report.FellBack() || len(failed) < 6 {
		t.Errorf("%v after %d errors", report, len(failed))
	}
	must(t, ck.Close())
}

// A failed listing is an error: no run starts over because of it.
func TestListingThatFails(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	fs.ReadFault = func(kind, _ string) error {
		if kind == "readdir" {
			return syscall.EIO
		}
		return nil
	}
	if _, _, err := s.Latest(ctx); !errors.Is(err, syscall.EIO) || errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Save(ctx, content(3, "new")); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	fs.ReadFault = nil
	if infos, err := s.List(ctx); err != nil || len(infos) != 2 {
		t.Errorf("%v, %v", infos, err)
	}
}

// A reader alongside a running job finds a checkpoint, even if the one that it looked at first is rotated out.
func TestReaderBesideRotation(t *testing.T) {
	fs := faultfs.New()
	writer := save(t, fs, 1, 2)
	reader := checkpoint.New(fs, root, 0)
	rotate := true
	fs.ReadFault = func(kind, path string) error {
		if rotate && kind == "open" && path == filepath.Join(root, "step-00000002", checkpoint.ModelFile) {
			rotate = false
			for n := range int64(2) {
				_, err := writer.Save(ctx, content(n+3, "new"))
				must(t, err)
			}
		}
		return nil
	}
	ck, report, err := reader.Latest(ctx)
	must(t, err)
	check(t, ck, 4, "new")
	if report.FellBack() || rotate {
		t.Error(report)
	}
	must(t, ck.Close())
}
