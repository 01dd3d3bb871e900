package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// pictures writes grey pictures into class folders; each class has its own grey.
func pictures(t *testing.T, split string, grey map[string]uint8, n int) {
	t.Helper()
	for class, g := range grey {
		dir := filepath.Join(split, class)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			img := image.NewGray(image.Rect(0, 0, 8, 8))
			for p := range img.Pix {
				img.SetGray(p%8, p/8, color.Gray{Y: g + uint8(i)})
			}
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".png")), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Classes are found by name: an evaluation needs no training folder, does not care for the order of folders, says which have no pictures,
// and refuses those that the model does not know. A run does not resume with other classes.
func TestClassesAreThoseOfTheCheckpoint(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "r.toml")
	text := strings.NewReplacer(`kind = "synthetic"`, `root = "`+filepath.ToSlash(filepath.Join(dir, "data"))+`"`, "classes = 6\n", "",
		"synthetic_samples = 64\n", "", "synthetic_eval_samples = 13\n", "",
		"ranks = 2", "ranks = 1").
		Replace(tiny)
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	greys := map[string]uint8{"cat": 20, "dog": 120, "owl": 220}
	pictures(t, filepath.Join(dir, "data", "train"), greys, 6)
	pictures(t, filepath.Join(dir, "data", "val"), greys, 2)
	run := func(args ...string) (string, error) {
		out, err := program(t, append(args, "--set", "run.output_dir="+filepath.Join(dir, "out"))...).CombinedOutput()
		return string(out), err
	}
	if out, err := run("run", recipe); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(dir, "data", "train")); err != nil {
		t.Fatal(err)
	}
	loss := func(root string) float64 {
		t.Helper()
		cmd := program(t, "eval", filepath.Join(dir, "out"), "--json", "--set", "data.root="+root)
		raw, err := cmd.Output()
		var v map[string]float64
		if err != nil || json.Unmarshal(raw, &v) != nil {
			t.Fatalf("%s: %v\n%s", root, err, raw)
		}
		return v["loss"]
	}
	whole := loss(filepath.Join(dir, "data"))
	sum := 0.0
	for class, g := range greys {
		root := filepath.Join(dir, "only "+class)
		pictures(t, filepath.Join(root, "val"), map[string]uint8{class: g}, 2)
		sum += loss(root) / 3
	}
	if abs(sum-whole) > 1e-5 { // float32 sums of 6 terms in another order
		t.Errorf("the classes one by one have a loss of %g, together %g", sum, whole)
	}
	if out, err := run("eval", filepath.Join(dir, "out"), "--set", "data.root="+filepath.Join(dir, "only dog")); err != nil ||
		!strings.Contains(out, "classes=\"cat, owl\"") {
		t.Errorf("missing classes: %v\n%s", err, out)
	}
	other := filepath.Join(dir, "other")
	pictures(t, filepath.Join(other, "val"), map[string]uint8{"a_dog": 120, "cat": 20, "yak": 9}, 2)
	pictures(t, filepath.Join(other, "train"), map[string]uint8{"a_dog": 120, "cat": 20, "owl": 220}, 4)
	if out, err := run("eval", filepath.Join(dir, "out"), "--set", "data.root="+other); err == nil || !strings.Contains(out, "a_dog, yak") {
		t.Errorf("unknown classes: %v\n%s", err, out)
	}
	out, err := run("run", recipe, "--set", "data.root="+other, "--set", "run.steps=6", "--set", "eval.enabled=false")
	if code := exitCodeOf(err); code != 78 || !strings.Contains(out, "missing: dog; unknown: a_dog; at another label: cat 0 -> 1") {
		t.Errorf("resume: exit code %d\n%s", code, out)
	}
}

// exitCodeOf is the exit code of a program, 0 without an error.
func exitCodeOf(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return 0
}

// The warnings about a recipe's training are not repeated by an evaluation; those about a setting of its own command line are.
func TestEvalWarnsOfItsOwnSettingsOnly(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	out, err := program(t, "run", recipe, "-n", "1", "--set", "run.output_dir="+dir, "--set", "run.steps=2", "--set", "schedule.warmup_steps=5").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ends during warm-up") {
		t.Fatalf("%v\n%s", err, out)
	}
	for set, want := range map[string]bool{"eval.batch_per_rank=3": false, "optim.beta1=0.5": true} {
		out, err := program(t, "eval", dir, "-n", "1", "--set", set).CombinedOutput()
		if err != nil || strings.Contains(string(out), "warm-up") || strings.Contains(string(out), "warning: optim.beta1: has no effect") != want {
			t.Errorf("%s: %v\n%s", set, err, out)
		}
	}
}

// An evaluation whose result cannot be written has failed: nothing else holds it.
func TestEvalOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	recipe, dir := tinyRecipe(t)
	dir = filepath.Join(dir, "full")
	if out, err := program(t, "run", recipe, "-n", "1", "--set", "run.output_dir="+dir, "--set", "run.steps=2").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "eval", dir, "-n", ranks)
		cmd.Stdout = full
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != launch.ExitStorage || !strings.Contains(stderr.String(), "cannot be written") {
			t.Errorf("%s ranks: it ended with %v\n%s", ranks, err, stderr.String())
		}
	}
}
