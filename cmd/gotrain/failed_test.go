package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// The error of a failed run is printed once, at the end, and metrics.jsonl has it too.
func TestErrorIsPrintedOnce(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	const text = "the loss is not finite"
	out, err := program(t, "run", recipe, "-n", "1", "--set", "run.output_dir="+dir, "--set", "optim.lr=1000", "--set", "run.steps=100").CombinedOutput()
	got := string(out)
	if code := exitCodeOf(err); code != launch.ExitNumerics || strings.Count(got, text) != 1 || !strings.Contains(got, "failed after step ") {
		t.Errorf("exit code %d; want %d, the step of the failure, and %q once:\n%s", code, launch.ExitNumerics, text, got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil || !strings.Contains(string(log), text) {
		t.Errorf("metrics.jsonl: %v\n%s", err, log)
	}
}
