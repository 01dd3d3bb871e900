package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// atFirst calls do at the first write.
type atFirst struct {
	text bytes.Buffer
	do   func()
}

func (w *atFirst) Write(b []byte) (int, error) {
	if do := w.do; do != nil {
		w.do = nil
		do()
	}
	return w.text.Write(b)
}

// A run in progress removes old checkpoints. One that goes between its choice and the reading of its weights is replaced by a newer one, as long as the
// argument did not name it.
func TestEvalOfACheckpointThatARunRemoves(t *testing.T) {
	dir := t.TempDir()
	recipe, out := filepath.Join(dir, "r.toml"), filepath.Join(dir, "out")
	if err := os.WriteFile(recipe, []byte(strings.Replace(tiny, "ranks = 2", "ranks = 1", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if raw, err := program(t, "run", recipe, "--set", "run.output_dir="+out, "--set", "checkpoint.every_steps=1", "--set",
		"checkpoint.every_epochs=0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	kept, err := filepath.Glob(filepath.Join(out, "checkpoints", "step-*"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("%v %v", kept, err)
	}
	gone := filepath.Join(dir, "gone")
	for from, want := range map[string]int{out: 0, kept[1]: launch.ExitNoInput} {
		var stdout bytes.Buffer
		stderr := &atFirst{do: func() {
			if err := os.Rename(kept[1], gone); err != nil {
				t.Error(err)
			}
		}}
		code := run(t.Context(), []string{"eval", from, "--set", "eval.min_delta=1"}, &stdout, stderr) // the warning about this key is written in between
		again := strings.Contains(stderr.text.String(), filepath.Base(kept[1])+" was removed meanwhile") && strings.Contains(stdout.String(), kept[0]+": loss ")
		if code != want || again != (want == 0) {
			t.Errorf("eval %s: exit code %d\n%s%s", from, code, stdout.String(), stderr.text.String())
		}
		if err := os.Rename(gone, kept[1]); err != nil {
			t.Fatal(err)
		}
	}
}
