//go:build cgo && linux

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tinyRun are the arguments of a short run of the tiny ResNet.
func tinyRun(t *testing.T, device string, ranks, steps int, more ...string) (args []string, dir string) {
	t.Helper()
	recipe, dir := tinyRecipe(t)
	return append([]string{"run", recipe, "-n", strconv.Itoa(ranks)}, set(append([]string{"run.output_dir=" + dir, "train.device=" + device,
		fmt.Sprint("run.steps=", steps), fmt.Sprint("train.batch_per_rank=", 16/ranks), "eval.enabled=false", "train.bucket_mb=0.02",
		"train.first_bucket_mb=0.01"}, more...)...)...), dir
}

// onCPU is the same run on the cpu device.
func onCPU(t *testing.T, args []string) {
	t.Helper()
	if out, err := program(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
}

// The same losses as the cpu device, with one, two and four NPUs, in each type, with both versions of CANN and both generations of devices. Batch norm
// takes the statistics of each rank's part, so a run is compared with one of as many ranks. In 16 bits the bound is what bf16 and f16 leave of a loss.
func TestNPULosses(t *testing.T) {
	const steps = 5
	machines := map[string]*machine{"8.1": withNPUs(t, "8.1"), "9.0": withNPUs(t, "9.0")}
	cpu := map[int]map[int]float64{}
	for _, c := range []struct {
		ranks               int
		dtype, soc, version string
		bound               float64
	}{
		{1, "f32", "A2", "8.1", 5e-6}, {2, "f32", "A3", "9.0", 5e-6}, {4, "f32", "A3", "8.1", 5e-6},
		{2, "bf16", "A2", "8.1", 0.03}, {1, "bf16", "A3", "9.0", 0.03}, {2, "f16", "A2", "9.0", 0.01}, {1, "f16", "A3", "8.1", 0.01},
	} {
		t.Run(fmt.Sprintf("%d %s %s %s", c.ranks, c.dtype, c.soc, c.version), func(t *testing.T) {
			if cpu[c.ranks] == nil {
				args, dir := tinyRun(t, "cpu", c.ranks, steps)
				onCPU(t, args)
				cpu[c.ranks] = lossesOf(t, dir)
			}
			m := machines[c.version].with("FAKE_CANN_SOC="+c.soc, "FAKE_CANN_DEVICES=4")
			m.t = t
			args, dir := tinyRun(t, "npu", c.ranks, steps, "train.dtype="+c.dtype)
			out, _ := m.run(c.ranks, args...)
			if !strings.Contains(out, "("+c.soc+"), CANN "+c.version) {
				t.Errorf("another device was used:\n%s", out)
			}
			near(t, "npu", lossesOf(t, dir), cpu[c.ranks], steps, c.bound)
		})
	}
}

// finetune are the arguments of a short run of a real Llama: a global batch of four sequences.
func finetune(device, dir string, ranks, steps int, more ...string) []string {
	return append([]string{"run", "llama-finetune", "-n", strconv.Itoa(ranks)}, set(append([]string{"run.output_dir=" + dir, "train.device=" + device,
		"run.epochs=0", fmt.Sprint("run.steps=", steps), fmt.Sprint("train.batch_per_rank=", 4/ranks), "text.sequence=64", "eval.enabled=false", "eval.every_steps=0",
		"schedule.warmup_steps=2", "train.bucket_mb=0.3", "train.first_bucket_mb=0.1"}, more...)...)...)
}

// A Llama has no statistics of a batch: however many NPUs share it, losses are those of one cpu.
func TestNPULlama(t *testing.T) {
	const steps = 4
	cpu := t.TempDir()
	onCPU(t, finetune("cpu", cpu, 1, steps))
	want := lossesOf(t, cpu)
	for _, c := range []struct {
		ranks        int
		version, soc string
		dtype        string
		bound        float64
	}{
		{1, "8.1", "A3", "f32", 5e-6}, {2, "9.0", "A2", "f32", 5e-6}, {4, "8.1", "A2", "f32", 5e-6}, {2, "8.1", "A2", "bf16", 0.02},
		{2, "9.0", "A3", "f16", 0.005},
	} {
		t.Run(fmt.Sprintf("%d %s %s %s", c.ranks, c.dtype, c.soc, c.version), func(t *testing.T) {
			dir := t.TempDir()
			withNPUs(t, c.version, "FAKE_CANN_SOC="+c.soc, "FAKE_CANN_DEVICES=4").run(c.ranks, finetune("npu", dir, c.ranks, steps, "train.dtype="+c.dtype)...)
			near(t, "npu", lossesOf(t, dir), want, steps, c.bound)
		})
	}
}

// The greedy story of the real model, word by word, in each version of CANN.
func TestNPUGenerate(t *testing.T) {
	tok := filepath.Join(stories, "tok512.bin")
	args := []string{"generate", stories, "--tokenizer", tok, "-t", "0", "-n", "60"}
	want, errs, code := cli(t, append(args, "--threads", "1", "--device", "cpu")...)
	if code != 0 || !strings.HasPrefix(want, story) {
		t.Fatalf("code %d\n%s%s", code, want, errs)
	}
	for _, version := range []string{"8.1", "9.0"} {
		m := withNPUs(t, version)
		cmd := m.program(append(args, "--device", "npu")...)
		out, err := cmd.Output()
		if err != nil || string(out) != want {
			t.Errorf("CANN %s: %v\n%s\nmust be\n%s", version, err, out, want)
		}
		if s := m.sound(); len(s) != 1 || s[0].Leaks() != "" {
			t.Errorf("CANN %s: %d processes; left behind: %s", version, len(s), s[0].Leaks())
		}
	}
}

// Two runs have the same bits, whatever the times of tasks. With deterministic=false they differ, and with one seed of the order of sums they do not: it is
// that order which makes the difference.
func TestNPUBits(t *testing.T) {
	const steps = 3
	m := withNPUs(t, "8.1", "FAKE_CANN_DEVICES=2")
	bits := func(options string, switches ...string) string {
		args, dir := tinyRun(t, "npu", 2, steps, "train.device_options="+options)
		m.with(switches...).run(2, args...)
		return saved(t, dir, steps)
	}
	want := bits("")
	for _, switches := range [][]string{{"FAKE_CANN_SEED=2"}, {"FAKE_CANN_JITTER=1", "FAKE_CANN_SEED=3"}} {
		if got := bits("", switches...); got != want {
			t.Errorf("with %v other bits:\n%s\nthan\n%s", switches, got, want)
		}
	}
	free := bits("deterministic=false", "FAKE_CANN_SEED=4")
	if other := bits("deterministic=false", "FAKE_CANN_SEED=5"); other == free {
		t.Error("nothing depends on the order of sums, though deterministic=false allows each")
	}
}

// Forty steps of AdamW from a real model's weights, by CANN's operator, whose hyperparameters come from the host in every step.
func TestNPUAdamW(t *testing.T) {
	const steps = 40
	cpu := t.TempDir()
	onCPU(t, finetune("cpu", cpu, 1, steps))
	want := lossesOf(t, cpu)
	for _, c := range []struct {
		ranks        int
		version, soc string
	}{{1, "8.1", "A2"}, {2, "9.0", "A3"}} {
		t.Run(fmt.Sprintf("%d %s %s", c.ranks, c.soc, c.version), func(t *testing.T) {
			dir := t.TempDir()
			withNPUs(t, c.version, "FAKE_CANN_SOC="+c.soc, "FAKE_CANN_DEVICES=2").run(c.ranks, finetune("npu", dir, c.ranks, steps)...)
			near(t, "npu", lossesOf(t, dir), want, steps, 5e-6)
		})
	}
}

// Gradients are cast to 16 bits by the device, in the order of its events; int8 is refused before anything starts.
func TestNPUCompress(t *testing.T) {
	const steps = 5
	args, dir := tinyRun(t, "cpu", 2, steps)
	onCPU(t, args)
	want := lossesOf(t, dir)
	m := withNPUs(t, "9.0").with("FAKE_CANN_SOC=A2", "FAKE_CANN_DEVICES=2")
	for codec, bound := range map[string]float64{"f16": 0.005, "bf16": 0.02} {
		args, dir := tinyRun(t, "npu", 2, steps, "comm.compress="+codec, "comm.compress_warmup_steps=1")
		m.run(2, args...)
		near(t, codec, lossesOf(t, dir), want, steps, bound)
	}
	args, _ = tinyRun(t, "npu", 2, steps, "comm.compress=int8")
	out, err := program(t, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "comm.compress: int8 encodes in the memory of the host") {
		t.Errorf("int8: %v\n%s", err, out)
	}
}
