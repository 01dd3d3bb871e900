package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/dirlock"
)

func savingRun(t *testing.T, dir string, more ...Option) *Trainer {
	t.Helper()
	tr, err := New(append([]Option{WithModel(mlp), WithData(noise(t, 24), 4), WithSteps(6), WithLR(0.1), WithOptimizer(optim.Default(optim.SGD, 0)),
		WithDevice("ref", 1), WithCheckpoints(dir, 2)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A second run in the folder of a running one is refused before it changes anything; the first run is unaffected.
func TestOneRunInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	first := savingRun(t, dir)
	first.afterStep = func(step int) {
		if step != 3 {
			return
		}
		_, err := savingRun(t, dir).Run(context.Background())
		var busy *dirlock.BusyError
		if !errors.As(err, &busy) || launch.ExitCode(err) != launch.ExitInUse || !strings.Contains(err.Error(), "mpirun, torchrun, srun or hcclrun") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "step-00000002")); err != nil {
			t.Error(err)
		}
	}
	if _, err := first.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, dirlock.Name)); !os.IsNotExist(err) {
		t.Errorf("the lock is left behind: %v", err)
	}
	if _, err := savingRun(t, dir, WithSteps(8)).Run(context.Background()); err != nil {
		t.Error(err)
	}
}

// A run that lost its folder ends and writes nothing more there.
func TestLostFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	tr := savingRun(t, dir)
	var before []string
	tr.afterStep = func(step int) {
		if step == 3 {
			if err := os.WriteFile(filepath.Join(dir, dirlock.Name), []byte(`{"token": "0123456789abcdef0123456789abcdef", "host": "elsewhere"}`), 0o666); err != nil {
				t.Error(err)
			}
			before = tree(t, dir)
		}
	}
	_, err := tr.Run(context.Background())
	if !errors.Is(err, dirlock.ErrLost) || launch.ExitCode(err) != launch.ExitInUse {
		t.Errorf("got %v", err)
	}
	if after := tree(t, dir); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the folder was changed after it was lost: %v, then %v", before, after)
	}
}

func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A caller may own the folder already.
func TestFolderOwnedByTheCaller(t *testing.T) {
	dir := t.TempDir()
	lock, err := Own(context.Background(), dir, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := savingRun(t, dir, func(c *Config) { c.Lock = lock }).Run(context.Background()); err != nil {
		t.Error(err)
	}
	if err := lock.Check(); err != nil {
		t.Error(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if infos, err := checkpoint.New(checkpoint.OS{}, dir, 0).List(context.Background()); err != nil || len(infos) != 2 {
		t.Errorf("%v, %v", infos, err)
	}
}
