package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/graph/roofline"
	"github.com/gotrain/gotrain/npu"
)

// tinyStep makes the step of a recipe small.
var tinyStep = []string{"--steps", "1", "--threads", "1", "--set", "model.depth=18", "--set", "model.width=4", "--set", "train.batch_per_rank=2"}

// needsLimits skips a test of the host device where that is not there.
func needsLimits(t *testing.T) {
	t.Helper()
	d, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil {
		t.Skip(err)
	}
	d.Close()
}

// The object has everything: the machine, its limits, and each kernel once; shares and times sum up.
func TestBenchStepJSON(t *testing.T) {
	needsLimits(t)
	out, errs, _ := cli(t, append([]string{"bench", "step", "quickstart", "--json"}, tinyStep...)...) // whether a busy machine exceeds a bound is left to chance
	var s stepReport
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	if s.Batch != 2 || s.Ranks != 1 || s.Threads != 1 || s.Recipe != "quickstart" || s.DType != "f32" || s.Processor == "unknown" ||
		!strings.HasPrefix(s.Device, "cpu (") {
		t.Errorf("%+v", s)
	}
	if s.Limits.Peak(npu.F32) <= 0 || len(s.Limits.Rates) < 10 || s.Limits.Rates[0].Read <= 0 || s.One.Threads != 1 || s.Step <= 0 || s.Part <= 0 || s.Part > 1 {
		t.Errorf("limits %+v, step %g, part %g", s.Limits, s.Step, s.Part)
	}
	var share float64
	var kinds []string
	var took, flop int64
	for _, k := range s.Kinds {
		share, kinds = share+k.Share, append(kinds, k.Kind)
	}
	for _, k := range s.Kernels {
		took, flop = took+int64(k.Took), flop+k.FLOP
		if k.Kind == "conv2d" && (k.FLOP == 0 || k.Bound == 0 || k.Reads == 0) {
			t.Errorf("%+v", k)
		}
	}
	if math.Abs(share-1) > 1e-6 || took != int64(s.Took) || flop == 0 {
		t.Errorf("shares sum up to %g, kernels to %d of %d ns", share, took, s.Took)
	}
	for _, want := range []string{"conv2d", "conv2d_bwd_data", "conv2d_bwd_weights", "batchnorm", "batchnorm_bwd", "sgd", "matmul dW"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s among %v", want, kinds)
		}
	}
}

// Ranks measure at the same time, and rank 0 prints; a Llama has other kernels.
func TestBenchStepTable(t *testing.T) {
	needsLimits(t)
	cmd := program(t, "bench", "step", "llama-finetune", "--ranks", "2", "--steps", "1", "--all", "--set", "train.batch_per_rank=1", "--set", "text.sequence=16")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 70 && strings.Contains(errs.String(), "this measurement is wrong")) {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	for _, want := range []string{", f32, batch 1 × 1, 2 ranks of 1 thread\n", "# f32 multiply-adds, ", "read, copy, add in 256.0 MiB", "\nadamw ",
		"\nattention ", "f32[", "# median of 1 step: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "# measured limits"); n != 1 {
		t.Errorf("%d tables", n)
	}
}

// A device that cannot measure its limits has times without bounds.
func TestBenchStepWithoutLimits(t *testing.T) {
	out, errs, code := cli(t, append([]string{"bench", "step", "quickstart", "--set", "train.device=ref"}, tinyStep...)...)
	if code != 0 || !strings.Contains(out, "does not measure its limits") || !strings.Contains(out, "plain loops") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}

func TestBenchStepFlags(t *testing.T) {
	for args, want := range map[string]string{
		"bench step":                              "accepts 1 arg",
		"bench step quickstart --steps 0":         "--steps must be at least 1",
		"bench step nothing-like-this":            "nothing-like-this",
		"bench step quickstart --set train.lr=1x": "train.lr",
	} {
		if _, errs, code := cli(t, strings.Fields(args)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", args, code, errs)
		}
	}
	if out, _, _ := cli(t, "__complete", "bench", "step", "res"); !strings.Contains(out, "resnet50\t") {
		t.Errorf("recipes are not completed:\n%s", out)
	}
	if out, _, _ := cli(t, "__complete", "bench", "step", "resnet50", "--set", "train.dtype="); !strings.Contains(out, "bf16") {
		t.Errorf("values are not completed:\n%s", out)
	}
}

// What cannot be true is an error that says what to do.
func TestExceededStep(t *testing.T) {
	d := npu.D(npu.F32, 1<<20)
	fast := roofline.Sample{Op: npu.Op{Kind: npu.Relu, In: []npu.Desc{d}, Out: []npu.Desc{d}}, Impl: "c:relu", Took: time.Microsecond}
	l := npu.Limits{Threads: 1, Rates: []npu.Rates{{Bytes: 1 << 20, Read: 1e9, Copy: 1e9, Add: 1e9}}}
	s := &stepReport{Report: roofline.New([]roofline.Sample{fast}, l)}
	err := s.believed()
	if err == nil || exitCode(err) != 70 || !strings.Contains(err.Error(), "relu took 1µs, but needs at least 8.388608ms") ||
		!strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("%v", err)
	}
	if err := (&stepReport{Report: &roofline.Report{}}).believed(); err != nil {
		t.Error(err)
	}
}

// What others used is what the machine used, less this process; a machine that does not tell has none.
func TestOthers(t *testing.T) {
	busy, total := busyIn("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3\n")
	if busy != 810*time.Millisecond || total != 5310*time.Millisecond {
		t.Errorf("%v of %v", busy, total)
	}
	for _, bad := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h"} {
		if busy, total := busyIn(bad); busy != 0 || total != 0 {
			t.Errorf("%q: %v of %v", bad, busy, total)
		}
	}
	from, to := usage{}, usage{all: 8 * time.Second, total: 10 * time.Second, own: 5 * time.Second}
	if got := others(from, to); got < 0.299 || got > 0.301 || others(from, usage{}) != 0 {
		t.Errorf("%g", got)
	}
	if u := usedNow(); u.own <= 0 {
		t.Errorf("%+v", u)
	}
}

func TestProcessorName(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: other\n": "AMD EPYC (family 25, model 17)",
		"processor : 0\nBogoMIPS : 50\nCPU implementer : 0x41\nCPU part : 0xd40\n":                                         "implementer 0x41, part 0xd40",
		"": "unknown",
	} {
		if got := processorIn([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
