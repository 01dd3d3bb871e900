package main

import (
	"strings"
	"testing"
)

// quiet prints nothing of a run that is right, debug every kernel; files and numbers do not depend on it.
func TestLogLevel(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for level, want := range map[string][]string{
		"quiet": nil,
		"info":  {"Step 4/4: loss="},
		"debug": {"Step 4/4: loss=", "debug: identity who=", "conv2d", "GFLOP forward"},
	} {
		out, err := program(t, "run", recipe, "--log-level", level, "--set", "run.output_dir="+dir+level, "--set", "train.batch_per_rank=2").CombinedOutput()
		if err != nil || want == nil && len(out) > 0 || level == "info" && strings.Contains(string(out), "debug:") {
			t.Errorf("%s: %v\n%s", level, err, tail(string(out)))
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s: no %q in\n%s", level, w, tail(string(out)))
			}
		}
		if in, errs, code := cli(t, "inspect", dir+level); code != 0 || !strings.Contains(in, "step 4, ") {
			t.Errorf("%s: %s%s", level, in, errs)
		}
	}
	// What is wrong is said at every level.
	if _, errs, code := cli(t, "run", "nowhere.toml", "--log-level", "quiet"); code != 78 || !strings.Contains(errs, "no such recipe") {
		t.Errorf("code %d, %s", code, errs)
	}
	if _, errs, code := cli(t, "run", recipe, "--log-level", "loud"); code != 64 || !strings.Contains(errs, "one of quiet, info, debug") {
		t.Errorf("code %d, %s", code, errs)
	}
}
