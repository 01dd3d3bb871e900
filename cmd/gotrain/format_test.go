package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/format1 is what a program before this one left: the checkpoint of step 2 of a run of two ranks over v1.toml, and what it said
// about steps 3 and 4 and their evaluation. Every later version goes on from there, to the same numbers; where arithmetic in float64 is
// fused (not on amd64) they may differ in the last places.
func TestCheckpointOfFormat1Resumes(t *testing.T) {
	dir := t.TempDir()
	ck := filepath.Join(dir, "checkpoints")
	if err := os.CopyFS(filepath.Join(ck, "step-00000002"), os.DirFS(filepath.Join("testdata", "format1", "step-00000002"))); err != nil {
		t.Fatal(err)
	}
	out, err := program(t, "run", filepath.Join("testdata", "format1", "v1.toml"), "--set", "run.output_dir="+dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "resumed at step 2 of 4: 2 steps left") {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "other settings") || strings.Contains(string(out), "other data") {
		t.Errorf("it finds changes where there are none:\n%s", out)
	}
	read := func(path string) map[string]map[int]float64 {
		t.Helper()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[int]float64{"step": {}, "eval": {}}
		for line := range strings.Lines(string(raw)) {
			var e struct {
				Event string
				Step  int
				Loss  float64
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if got[e.Event] != nil {
				got[e.Event][e.Step] = e.Loss
			}
		}
		return got
	}
	want, got := read(filepath.Join("testdata", "format1", "rest.jsonl")), read(filepath.Join(dir, "metrics.jsonl"))
	for kind, losses := range want {
		if len(losses) == 0 || len(got[kind]) != len(losses) {
			t.Errorf("%s: %v, want %v", kind, got[kind], losses)
		}
		for step, loss := range losses {
			if abs(got[kind][step]-loss) > 1e-6 {
				t.Errorf("%s %d: loss %.9g, want %.9g", kind, step, got[kind][step], loss)
			}
		}
	}
	v, errs, code := cli(t, "eval", filepath.Join("testdata", "format1", "step-00000002"), "--ranks", "1", "--json")
	if code != 0 || !strings.Contains(v, `"items": 13`) {
		t.Errorf("eval: exit code %d\n%s%s", code, v, errs)
	}
}

// A finished run says that it is done; one that is asked for other settings says which, and that they have no effect.
func TestFinishedRunAgain(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for i, c := range []struct {
		code int
		want string
		sets []string
	}{
		{0, "done: steps=4", nil},
		{0, "resumed at step 4 of 4: the training is done", []string{"log.every_steps=2"}},
		{78, "optim.lr: 0.1 -> 0.3", []string{"optim.lr=0.3"}},
		{0, "resumed with changed settings: optim.lr: 0.1 -> 0.3; run.steps: 4 -> 6", []string{"optim.lr=0.3", "run.steps=6"}},
	} {
		args := []string{"run", recipe, "--set", "run.output_dir=" + dir}
		for _, s := range c.sets {
			args = append(args, "--set", s)
		}
		out, err := program(t, args...).CombinedOutput()
		if code := exitCodeOf(err); code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("run %d: exit code %d, want %d and %q:\n%s", i+1, code, c.code, c.want, out)
		}
	}
}
