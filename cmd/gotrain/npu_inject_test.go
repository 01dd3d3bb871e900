//go:build cgo && linux

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// fault is an error of CANN in rank 1 of two.
type fault struct {
	function string
	n        int64 // which call; 0: every one
	code     int
	late     bool // the call succeeds; its task on the device fails
}

func (f fault) String() string {
	s := fmt.Sprintf("%s:%d:%d", f.function, f.n, f.code)
	if f.n == 0 {
		s = fmt.Sprintf("%s:*:%d", f.function, f.code)
	}
	if f.late {
		s += "@"
	}
	return s
}

const faultySteps = 4

// faulty is a machine for runs that fail, what a run on it calls in rank 1, and the bits that it must end with.
type faulty struct {
	*machine
	calls map[string]int64
	want  string
}

func (f *faulty) args(dir string) []string {
	args, _ := tinyRun(f.t, "npu", 2, faultySteps, "checkpoint.every_steps=1", "run.output_dir="+dir, "train.batch_per_rank=2")
	return args
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{machine: withNPUs(t, "8.1", "FAKE_CANN_DEVICES=2", "FAKE_CANN_INJECT_IF=GOTRAIN_RANK=1")}
	dir := t.TempDir()
	_, stats := f.run(2, f.args(dir)...)
	f.want = saved(t, dir, faultySteps)
	f.calls = maps.Clone(stats[0].Calls)
	for name, n := range stats[1].Calls {
		f.calls[name] = min(n, f.calls[name]) // rank 0 calls more: what only it calls is not injected into rank 1
	}
	return f
}

// releases reports whether a function gives something back; its error must not hide how the run ended.
func releases(function string) bool {
	return strings.Contains(function, "Destroy") || strings.Contains(function, "Free") || strings.Contains(function, "Reset")
}

// goodWithout are functions that only inform: a run does without what they say.
var goodWithout = []string{"aclrtGetVersion", "aclGetRecentErrMsg", "aclrtEventGetTimestamp", "aclrtGetMemInfo", "aclrtGetDeviceUtilizationRate"}

// fails runs with a fault: the run ends soon, with an error that says what failed and where, the verdict names rank 1, and the same command goes on to the
// bits of a run without a fault.
func (f *faulty) fails(t *testing.T, x fault) {
	t.Helper()
	dir := t.TempDir()
	m := &faulty{f.with("FAKE_CANN_INJECT=" + x.String()), f.calls, f.want}
	m.t, m.stats = t, t.TempDir()
	start := time.Now()
	raw, err := m.program(m.args(dir)...).CombinedOutput()
	out, code := string(raw), exitCodeOf(err)
	if releases(x.function) {
		m.allow = []string{"ends with", "still need", "were not freed"} // what could not be given back is there when the device is reset
	}
	stats := m.sound()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v to end", took)
	}
	if met(stats) == 0 {
		t.Skip("this run did not come to that call: the number of polls differs")
	}
	if code == 0 {
		if !releases(x.function) && !slices.Contains(goodWithout, x.function) {
			t.Errorf("the run goes on as if nothing was wrong\n%s", tail(out))
		}
	} else {
		m.explained(t, x, code, out)
		for _, s := range stats {
			// A device is reset at the end, unless a group of HCCL broke, which keeps its part to the end of the process; an injection writes statistics, too.
			if left := s.Leaks(); left != "" && s.Calls["aclrtResetDevice"] > 0 && !releases(x.function) {
				t.Errorf("a process that could clean up leaves %s", left)
			}
		}
		m.env = append(m.env, "FAKE_CANN_INJECT=")
		m.run(2, m.args(dir)...)
	}
	if got := saved(t, dir, faultySteps); got != m.want {
		t.Errorf("the run ends with other bits:\n%s\nthan\n%s", got, m.want)
	}
}

func met(stats []*fakecann.Stats) (n int64) {
	for _, s := range stats {
		n += s.Injected
	}
	return n
}

var firstFailed = regexp.MustCompile(`rank 1 failed first: [^\n]*`)

// explained checks what a failed run says.
func (f *faulty) explained(t *testing.T, x fault, code int, out string) {
	t.Helper()
	if !slices.ContainsFunc(launch.Codes(), func(c launch.CodeInfo) bool { return c.Code == code }) || code == launch.ExitTraining || code == launch.ExitInternal {
		t.Errorf("exit code %d", code)
	}
	line := firstFailed.FindString(out)
	if line == "" {
		t.Errorf("no verdict that rank 1 failed first")
	}
	pointer := strings.HasPrefix(x.function, "aclCreate") || x.function == "aclrtGetSocName" // it has no code, only NULL
	for _, want := range []string{x.function, fmt.Sprintf("error %d", x.code), "injected by FAKE_CANN_INJECT", "\nhint: "} {
		where := out
		if want != "\nhint: " && want != "injected by FAKE_CANN_INJECT" {
			where = line
		}
		if pointer && strings.HasPrefix(want, "error ") || x.late && want == x.function || strings.Contains(where, want) {
			continue
		}
		t.Errorf("no %q", want)
	}
	if t.Failed() {
		t.Logf("exit code %d\n%s", code, tail(out))
	}
}

// A sample of faults of all kinds; make ascend has all.
func TestNPUFaults(t *testing.T) {
	f := newFaulty(t)
	for _, x := range []fault{
		{"aclInit", 1, 500000, false},
		{"aclrtSetDevice", 1, 507033, false},
		{"aclrtMalloc", 0, 207001, false},
		{"HcclCommInitRootInfoConfig", 1, 6, false},
		{"HcclAllReduce", f.calls["HcclAllReduce"] / 2, 4, false},
		{"HcclAllReduce", f.calls["HcclAllReduce"] - 1, 507057, true},
		{"aclnnConvolutionGetWorkspaceSize", 2, 561003, false},
		{"aclnnConvolutionBackward", f.calls["aclnnConvolutionBackward"] / 2, 507015, true},
		{"aclnnBatchNorm", f.calls["aclnnBatchNorm"] - 1, 361001, false},
		{"aclrtMemcpyAsync", f.calls["aclrtMemcpyAsync"] / 2, 507901, false},
		{"aclrtSynchronizeStreamWithTimeout", f.calls["aclrtSynchronizeStreamWithTimeout"] / 2, 507010, false},
		{"aclrtDestroyStreamForce", 1, 107003, false},
	} {
		t.Run(x.String(), func(t *testing.T) { f.fails(t, x) })
	}
}
