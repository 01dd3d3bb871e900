//go:build cgo && linux

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

// begin starts a run, waits for a text and does something to it. It returns the exit code and the output.
func begin(t *testing.T, cmd *exec.Cmd, text string, do func(pid int)) (int, string) {
	t.Helper()
	var out transcript.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.WaitFor(t, text, 1)
	do(cmd.Process.Pid)
	cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

// A run that was stopped, and one of which a rank was killed, go on to the bits of a run that nothing happened to.
func TestNPUGoesOn(t *testing.T) {
	const steps = 30
	m := withNPUs(t, "8.1", "FAKE_CANN_DEVICES=2")
	more := []string{"checkpoint.every_steps=2", "log.every_steps=1"}
	args, whole := tinyRun(t, "npu", 2, steps, more...)
	m.run(2, args...)
	want := saved(t, whole, steps)

	args, dir := tinyRun(t, "npu", 2, steps, more...)
	code, out := begin(t, m.program(args...), "Step 3/", func(pid int) { syscall.Kill(pid, syscall.SIGTERM) })
	if code != launch.ExitStopped || !strings.Contains(out, "Checkpoint of step ") {
		t.Fatalf("stopped: code %d\n%s", code, tail(out))
	}
	for _, s := range m.sound() {
		if left := s.Leaks(); left != "" {
			t.Errorf("a run that is stopped leaves %s", left)
		}
	}
	code, out = begin(t, m.program(args...), fmt.Sprintf("Step %d/", steps/2), func(pid int) { syscall.Kill(childWithRank(t, pid, 1), syscall.SIGKILL) })
	if code != 137 || !strings.Contains(out, "rank 1 failed first: killed by SIGKILL") {
		t.Fatalf("killed: code %d\n%s", code, tail(out))
	}
	m.sound()
	out, _ = m.run(2, args...)
	if strings.Contains(out, "Step 3/") {
		t.Errorf("the run began again:\n%s", out)
	}
	if got := saved(t, dir, steps); got != want {
		t.Errorf("the run has other bits than one that nothing happened to:\n%s\n%s", got, want)
	}
	near(t, "in parts", lossesOf(t, dir), lossesOf(t, whole), steps, 0)
}

// A checkpoint of an NPU goes on on a CPU, one of a CPU on NPUs, and on another number of devices: with the losses of a run on one device.
func TestNPUChangesDevice(t *testing.T) {
	const steps = 6
	m := withNPUs(t, "9.0", "FAKE_CANN_DEVICES=4")
	constant := []string{"schedule.kind=constant", "schedule.warmup_steps=0"}
	whole, dir := t.TempDir(), t.TempDir()
	onCPU(t, finetune("cpu", whole, 1, steps, constant...))
	for _, c := range []struct {
		device       string
		ranks, until int
	}{{"npu", 2, 2}, {"cpu", 1, 3}, {"npu", 4, 4}, {"cpu", 2, 5}, {"npu", 1, steps}} {
		args := finetune(c.device, dir, c.ranks, c.until, constant...)
		if c.device == "cpu" {
			onCPU(t, args)
		} else {
			m.run(c.ranks, args...)
		}
	}
	near(t, "on five machines", lossesOf(t, dir), lossesOf(t, whole), steps, 5e-6)
}
