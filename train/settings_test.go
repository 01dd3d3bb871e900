package train

import (
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// A finished run does nothing when started again; changed settings, which could have no effect, are an error that lists each one. A longer run
// continues with them.
func TestFinishedRunWithOtherSettings(t *testing.T) {
	dir := t.TempDir()
	run := func(steps int, settings map[string]string) error {
		_, errs := together(t, 2, func(int) []Option {
			return append(small(t, dir, steps), func(c *Config) { c.Settings = settings })
		}, nil)
		return errors.Join(errs...)
	}
	first := map[string]string{"optim.lr": "0.1", "model.init_from": "", "run.steps": "3"}
	for i, c := range []struct {
		steps    int
		settings map[string]string
		want     string
	}{
		{3, first, ""},
		{3, first, ""},
		{3, map[string]string{"optim.lr": "0.2", "model.init_from": "w", "run.steps": "3"}, "model.init_from: (none) -> w; optim.lr: 0.1 -> 0.2\nhint: choose another output_dir"},
		{2, map[string]string{"optim.lr": "0.1", "model.init_from": "", "run.steps": "2"}, ""},
		{4, map[string]string{"optim.lr": "0.2", "model.init_from": "", "run.steps": "4"}, ""},
		{4, map[string]string{"optim.lr": "0.2", "model.init_from": "", "run.steps": "4"}, ""},
	} {
		err := run(c.steps, c.settings)
		if c.want == "" && err != nil || c.want != "" && (launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("run %d: exit code %d: %v, want %q", i+1, launch.ExitCode(err), err, c.want)
		}
	}
}
