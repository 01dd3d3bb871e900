package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// grey is a run on grey pictures whose class is their brightness, with its folder of pictures.
func greyRun(t *testing.T) (run, pics string) {
	t.Helper()
	dir := t.TempDir()
	recipe := filepath.Join(dir, "r.toml")
	text := strings.NewReplacer(`kind = "synthetic"`, `root = "`+filepath.ToSlash(filepath.Join(dir, "data"))+`"`, "classes = 6\n", "",
		"synthetic_samples = 64\n", "", "synthetic_eval_samples = 13\n", "", "ranks = 2", "ranks = 1").Replace(tiny)
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	greys := map[string]uint8{"cat": 20, "dog": 120, "owl": 220}
	pictures(t, filepath.Join(dir, "data", "train"), greys, 6)
	pictures(t, filepath.Join(dir, "data", "val"), greys, 2)
	run = filepath.Join(dir, "out")
	if out, err := program(t, "run", recipe, "--set", "run.output_dir="+run, "--set", "run.steps=30").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return run, filepath.Join(dir, "data", "val")
}

// The folder of a run is enough. Results are in the order of the pictures; broken ones are named, and the exit code says it.
func TestPredict(t *testing.T) {
	run, pics := greyRun(t)
	if err := os.RemoveAll(filepath.Join(filepath.Dir(pics), "train")); err != nil {
		t.Fatal(err)
	}
	out, errs, code := cli(t, "predict", run, pics, "--top", "2")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 6 || !strings.HasPrefix(errs, "6 pictures in ") || strings.Count(errs, "\n") != 1 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for i, class := range []string{"cat", "cat", "dog", "dog", "owl", "owl"} {
		want := filepath.Join(pics, class, []string{"0.png", "1.png"}[i%2]) + ": "
		rest, ok := strings.CutPrefix(lines[i], want)
		if !ok || strings.Count(rest, " %") != 2 {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
	// A name with a newline stays on its line, and whoever names the pictures first is told.
	raw, err := os.ReadFile(filepath.Join(pics, "dog", "0.png"))
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "two\nlines\t.png")
	if err := os.WriteFile(odd, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := cli(t, "predict", run, odd, "--top", "1"); code != 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, `two\nlines\t.png: `) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code := cli(t, "predict", pics, run); code != 66 || !strings.Contains(errs, "hint: the checkpoint comes first") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, errs, code := cli(t, "predict", run, "/nowhere.jpg"); code != 66 || !strings.HasPrefix(errs, "/nowhere.jpg: no such file") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	broken := filepath.Join(t.TempDir(), "broken.png")
	if err := os.WriteFile(broken, []byte("\x89PNG\r\n\x1a\nnot"), 0o644); err != nil {
		t.Fatal(err)
	}
	dog := filepath.Join(pics, "dog", "0.png")
	cmd := program(t, "predict", run, dog, broken, "-", "--json")
	cmd.Stdin = strings.NewReader(filepath.Join(pics, "owl") + "\r\n\n/nowhere.jpg\n")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); exitCodeOf(err) != 66 || !strings.Contains(stderr.String(), "2 of 5 pictures could not be read") ||
		!strings.Contains(stderr.String(), broken+": ") || !strings.Contains(stderr.String(), "/nowhere.jpg: ") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got []jsonPrediction
	for d := json.NewDecoder(&stdout); d.More(); {
		var p jsonPrediction
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	if len(got) != 5 || got[0].Path != dog || len(got[0].Classes) != 3 || got[1].Error == "" || got[2].Path != filepath.Join(pics, "owl", "0.png") ||
		got[4].Error == "" || got[4].Classes != nil {
		t.Errorf("%+v", got)
	}
	sum := 0.0
	for _, c := range got[0].Classes {
		sum += c.Probability
	}
	if abs(sum-1) > 1e-9 {
		t.Errorf("probabilities of all classes add up to %g", sum)
	}
}

// A checkpoint without a description is opened by its recipe: this one is from the first format.
func TestPredictWithAnOldCheckpoint(t *testing.T) {
	old := filepath.Join("testdata", "format1", "step-00000002")
	_, errs, code := cli(t, "predict", old, "x.png")
	if code != 66 || !strings.Contains(errs, "does not say how a picture becomes an input") && !strings.Contains(errs, "older version") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Whatever cannot predict says what to use instead.
func TestPredictRefuses(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"predict stories260k x.png", 66, "gotrain generate"},
		{"predict nowhere x.png", 66, "no checkpoint"},
		{"predict " + t.TempDir() + " x.png", 66, "no checkpoint\nhint: a run writes a checkpoint at its end"},
		{"predict nowhere", 64, "requires at least 2 arg(s)"},
		{"predict nowhere x.png --top 0", 64, "--top 0: at least 1"},
		{"predict nowhere x.png --device abacus", 64, "auto, npu, cpu or ref"},
		{"predict nowhere x.png --dtype f64", 64, "f32, bf16 or f16"},
		{"predict nowhere x.png --batch 0", 64, "--batch 0"},
	} {
		if _, errs, code := cli(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs)
		}
	}
}

// A reader that has seen enough ends the command, without a word.
func TestPredictIntoAClosedPipe(t *testing.T) {
	run, pics := greyRun(t)
	cmd := program(t, "predict", run, "-")
	cmd.Stdin = strings.NewReader(strings.Repeat(filepath.Join(pics, "dog", "0.png")+"\n", 5000))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Errorf("%v, %q", err, stderr.String())
	}
}
