//go:build ascend && cgo && linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Every function that a run of two ranks calls in rank 1 fails: at its first call, at one in the middle, and on the device afterwards.
func TestEveryNPUFault(t *testing.T) {
	f := newFaulty(t)
	for _, name := range slices.Sorted(maps.Keys(f.calls)) {
		n := f.calls[name]
		code := 107000
		switch {
		case n == 0:
			continue
		case len(name) > 4 && name[:4] == "Hccl":
			code = 4
		case len(name) > 5 && name[:5] == "aclnn":
			code = 361001
		}
		for _, k := range slices.Compact([]int64{1, max(1, n*2/3)}) {
			x := fault{name, k, code, false}
			t.Run(x.String(), func(t *testing.T) { f.fails(t, x) })
		}
		if name == "aclrtMemcpyAsync" || name == "HcclAllReduce" || code == 361001 && f.calls[name+"GetWorkspaceSize"] > 0 {
			x := fault{name, max(1, n*2/3), 507015, true}
			t.Run(x.String(), func(t *testing.T) { f.fails(t, x) })
		}
	}
}

// evaluated is what gotrain eval says of a run's newest checkpoint.
func evaluated(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	raw, err := program(t, "eval", filepath.Join(dir, "checkpoints"), "--json", "--set", "train.device=cpu").Output()
	var v map[string]float64
	if err != nil || json.Unmarshal(raw, &v) != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return v
}

// The quickstart as it is, to its accuracy, with one, two and four NPUs, beside the cpu device. Rounding differs, so the runs part after some hundred steps:
// losses are compared at the beginning, and the accuracy at the end, within three standard deviations of 500 pictures.
func TestNPUQuickstart(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			args := func(device, dir string) []string {
				return append([]string{"run", "quickstart", "-n", strconv.Itoa(ranks)}, set("run.output_dir="+dir, "train.device="+device, "log.every_steps=100",
					fmt.Sprint("train.batch_per_rank=", 100/ranks), "run.epochs=20")...)
			}
			cpu, npu := t.TempDir(), t.TempDir()
			onCPU(t, args("cpu", cpu))
			withNPUs(t, "8.1", "FAKE_CANN_DEVICES=4", "FAKE_CANN_ORDER=0").long().run(ranks, args("npu", npu)...)
			first := func(dir string) map[int]float64 {
				l := lossesOf(t, dir)
				maps.DeleteFunc(l, func(step int, _ float64) bool { return step > 10 })
				return l
			}
			near(t, "quickstart", first(npu), first(cpu), 10, 1e-4)
			a, b := evaluated(t, npu), evaluated(t, cpu)
			t.Logf("top1 %.3f; cpu %.3f", a["top1"], b["top1"])
			if a["items"] != 500 || a["top1"] < 0.75 || math.Abs(a["top1"]-b["top1"]) > 0.054 {
				t.Errorf("npu %v, cpu %v", a, b)
			}
		})
	}
}

// The fine-tuning recipe in full: the perplexity that it promises.
func TestNPUFinetune(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		args := append([]string{"run", "llama-finetune", "-n", strconv.Itoa(ranks)}, set("run.output_dir="+dir, "train.device=npu",
			fmt.Sprint("train.batch_per_rank=", 16/ranks))...)
		withNPUs(t, "9.0", "FAKE_CANN_DEVICES=2", "FAKE_CANN_ORDER=0").long().run(ranks, args...)
		v := evaluated(t, dir)
		t.Logf("%d ranks: %v", ranks, v)
		if !(math.Exp(v["loss"]) < 15.5) {
			t.Errorf("%d ranks: perplexity %g, must be about 14.7", ranks, math.Exp(v["loss"]))
		}
	}
}

// Three steps of the real ResNet50 at its real size and batch 2, forward and backward, in each type, beside the cpu device.
func TestNPUResNet50(t *testing.T) {
	args := func(device, dtype, dir string) []string {
		return append([]string{"run", "resnet50", "-n", "1"}, set("run.output_dir="+dir, "train.device="+device, "train.dtype="+dtype, "run.epochs=0", "run.steps=3",
			"data.kind=synthetic", "data.root=", "train.batch_per_rank=2", "train.accumulate_steps=1", "model.zero_init_residual=false", "schedule.kind=constant",
			"schedule.warmup_steps=0", "schedule.warmup_epochs=0", "optim.lr=0.01", "eval.enabled=false", "checkpoint.enabled=false")...)
	}
	cpu := t.TempDir()
	onCPU(t, args("cpu", "f32", cpu))
	for dtype, bound := range map[string]float64{"f32": 1e-4, "bf16": 0.05, "f16": 0.02} {
		dir := t.TempDir()
		withNPUs(t, "8.1", "FAKE_CANN_MEMORY_MIB=16384").long().run(1, args("npu", dtype, dir)...)
		near(t, dtype, lossesOf(t, dir), lossesOf(t, cpu), 3, bound)
	}
}

// long is the same machine for runs that take more than two minutes.
func (m *machine) long() *machine {
	m.patient = true
	return m
}
