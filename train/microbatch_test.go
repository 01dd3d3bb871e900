package train

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data"
)

// failing has samples that cannot be read.
type failing struct {
	data.Source
	err error
}

func (f failing) Load(context.Context, *data.Rand, int, [][]byte) error { return f.err }

// A broken sample would break the next start as well, so the exit code says that the data are at fault. A disk that does not answer may answer next time.
func TestExitCodeOfABrokenSample(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("not a picture"), launch.ExitNoInput},
		{fmt.Errorf("x.jpg: %w", syscall.ENOENT), launch.ExitNoInput},
		{fmt.Errorf("x.jpg: %w", syscall.EIO), launch.ExitTraining},
	} {
		_, errs := evaluateOn(t, 1, WithEval(failing{noise(t, 8), c.err}, 0))
		if launch.ExitCode(errs[0]) != c.code {
			t.Errorf("%v in an evaluation: exit code %d, want %d: %v", c.err, launch.ExitCode(errs[0]), c.code, errs[0])
		}
		tr, err := New(append(small(t, t.TempDir(), 6), func(cfg *Config) { cfg.Data = failing{cfg.Data, c.err} })...)
		if err == nil {
			_, err = tr.Run(context.Background())
		}
		if launch.ExitCode(err) != c.code {
			t.Errorf("%v in training: exit code %d, want %d: %v", c.err, launch.ExitCode(err), c.code, err)
		}
	}
}
