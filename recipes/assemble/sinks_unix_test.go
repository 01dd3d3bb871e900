//go:build unix

package assemble

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// A pipe where a file is to be written is an error and not a wait for a reader.
func TestSinksRefusePipes(t *testing.T) {
	for _, name := range []string{RecipeFile, "metrics.jsonl", "metrics.superseded.jsonl", "trace-rank0.json"} {
		r := recipes.Default()
		r.Run.OutputDir = t.TempDir()
		r.Log.Trace, r.Log.Console = true, false
		if err := syscall.Mkfifo(filepath.Join(r.Run.OutputDir, name), 0o600); err != nil {
			t.Skip(err)
		}
		sinks, err := Sinks(r, launch.Identity{World: 1}, nil)
		for _, s := range sinks {
			s.Close()
		}
		if err == nil || launch.ExitCode(err) != launch.ExitStorage || !strings.Contains(err.Error(), name+" is a pipe") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
