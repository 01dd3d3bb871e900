//go:build cgo && linux && amd64

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// A run may move to a processor with other instructions and back: layouts of images and weights, and blocks of channels, are those of the device, and a
// checkpoint has none of them. Convolutions are of both kinds, as those with a stride are direct. Sums have another order on another processor, which leaves
// of a loss in float32 about 1e-6 after six steps.
func TestAnotherProcessor(t *testing.T) {
	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil || dev.Info().Detail == "without oneDNN" {
		t.Skipf("the cpu device is not there: %v", err)
	}
	dev.Close()
	recipe, dir := tinyRecipe(t)
	run := func(isa, to, steps string) string {
		dir := filepath.Join(dir, to)
		cmd := program(t, "run", recipe, "--set", "train.device=cpu", "--set", "model.width=16", "--set", "train.conv_algorithm=winograd",
			"--set", "run.output_dir="+dir, "--set", "run.steps="+steps)
		cmd.Env = append(cmd.Environ(), "GOTRAIN_MAX_ISA="+isa)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", isa, err, tail(string(out)))
		}
		return dir
	}
	whole := lossesOf(t, run("", "whole", "6"))
	run("", "moved", "2")
	run("avx2", "moved", "4")
	near(t, "moved twice", lossesOf(t, run("", "moved", "6")), whole, 6, 1e-4)
}

// A misspelt limit of the instruction sets is an error with the same words, whoever reads it first: the pictures or the device.
func TestUnknownISA(t *testing.T) {
	t.Setenv("GOTRAIN_MAX_ISA", "avx3")
	_, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err == nil {
		t.Fatal("the cpu device takes it")
	}
	at := strings.Index(err.Error(), "unknown instruction set")
	words, hint, _ := strings.Cut(err.Error()[max(0, at):], "\n")
	for _, args := range [][]string{{"run", "quickstart", "--set", "train.device=ref", "--ranks", "1"}, {"data", "stats", "resnet50"},
		{"bench", "step", "resnet50", "--threads", "1"}, {"plan", "vit-tiny", "--classes", "10", "--samples", "100"}} {
		if _, errs, code := cli(t, args...); code == 0 || at < 0 || !strings.Contains(errs, words) || !strings.Contains(errs, hint) {
			t.Errorf("%v: code %d, %q, want %q", args, code, errs, err)
		}
	}
}
