package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

// Signals close together are one request; only SIGINT and SIGTERM ask again.
func TestRequests(t *testing.T) {
	start := time.Now()
	type step struct {
		s    os.Signal
		at   time.Duration
		want int
	}
	for name, steps := range map[string][]step{
		"patient": {{syscall.SIGINT, 0, 1}, {syscall.SIGINT, time.Second, 2}, {syscall.SIGINT, 2 * time.Second, 3}},
		"mixed":   {{syscall.SIGTERM, 0, 1}, {syscall.SIGINT, 5 * time.Second, 2}, {syscall.SIGTERM, time.Minute, 3}},
		"twice": {{syscall.SIGINT, 0, 1}, {syscall.SIGINT, 3 * time.Millisecond, 0}, {syscall.SIGTERM, 10 * time.Millisecond, 0}, {syscall.SIGINT,
			time.Second, 2}},
		"warnings": {{syscall.SIGUSR1, 0, 1}, {syscall.SIGUSR1, time.Minute, 0}, {syscall.SIGHUP, 2 * time.Minute, 0}, {syscall.SIGTERM, 3 * time.Minute, 2}},
	} {
		var r requests
		for i, s := range steps {
			if got := r.take(s.s, start.Add(s.at)); got != s.want {
				t.Errorf("%s: signal %d is request %d, want %d", name, i+1, got, s.want)
			}
		}
	}
}

// A second request leaves a step that would take long, with one rank and with several: the exit code is 75, and the checkpoint is that of
// the last complete step.
func TestSecondRequestAbandonsTheStep(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for _, ranks := range []string{"1", "2"} {
		dir := filepath.Join(dir, "second"+ranks)
		args := []string{"run", recipe, "-n", ranks, "--set", "run.output_dir=" + dir, "--set", "run.steps=2"}
		if out, err := program(t, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := program(t, append(args, "--set", "run.steps=4", "--set", "train.accumulate_steps=1000000")...) // a step of many minutes
		var out transcript.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.WaitFor(t, "started in", 1)
		cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(1100 * time.Millisecond)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitStopped || !strings.Contains(out.String(), "the checkpoint of step 2 is in "+dir) {
			t.Errorf("%s ranks: code %d\n%s", ranks, code, tail(out.String()))
		}
		if out, err := program(t, append(args, "--set", "run.steps=3")...).CombinedOutput(); err != nil {
			t.Errorf("%s ranks: resuming: %v\n%s", ranks, err, out)
		}
	}
}

// A run that is stopped before its first step has saved nothing: the same command starts over, and exit code and words say so, with any number of ranks.
func TestStopBeforeTheFirstStep(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "run", recipe, "-n", ranks, "--set", "run.output_dir="+filepath.Join(dir, "first"+ranks), "--set", "train.accumulate_steps=1000000")
		var out transcript.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.WaitFor(t, "started in", 1)
		cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(1100 * time.Millisecond)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitNotResumable || !strings.Contains(out.String(), "hint: the same command starts over") ||
			strings.Contains(out.String(), "again to resume") {
			t.Errorf("%s ranks: code %d\n%s", ranks, code, tail(out.String()))
		}
	}
}

// Without checkpoints the exit code does not invite to run again.
func TestStopWithoutCheckpoints(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "run", recipe, "-n", ranks, "--set", "run.output_dir="+filepath.Join(dir, "none"+ranks), "--set", "run.steps=100000",
			"--set", "checkpoint.enabled=false", "--set", "checkpoint.every_steps=0")
		var out transcript.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.WaitFor(t, "Step 2/", 1)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitNotResumable || !strings.Contains(out.String(), "are lost") {
			t.Errorf("%s ranks: code %d\n%s", ranks, code, tail(out.String()))
		}
	}
}

// stubborn ends for nothing.
type stubborn struct{ out io.Writer }

func (s stubborn) Stop()    { fmt.Fprintln(s.out, "asked to stop") }
func (s stubborn) Abandon() { fmt.Fprintln(s.out, "asked to abandon") }

// TestStubborn is the process that TestThirdRequestKills starts.
func TestStubborn(t *testing.T) {
	if os.Getenv("GOTRAIN_TEST_STUBBORN") == "" {
		t.Skip("another test runs it")
	}
	_ = untilStopped(context.Background(), launch.Identity{}, func() bool { return true }, func(_ context.Context, run func(stoppable)) error {
		run(stubborn{os.Stdout})
		fmt.Println("running")
		time.Sleep(time.Minute)
		return nil
	})
}

// Whatever a process is in, the third request ends it as the signal does by itself.
func TestThirdRequestKills(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestStubborn$", "-test.v")
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_STUBBORN=1")
	var out transcript.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.WaitFor(t, "running", 1)
	cmd.Process.Signal(syscall.SIGINT)
	out.WaitFor(t, "asked to stop", 1)
	time.Sleep(oneRequest + 100*time.Millisecond)
	cmd.Process.Signal(syscall.SIGTERM)
	out.WaitFor(t, "asked to abandon", 1)
	time.Sleep(oneRequest + 100*time.Millisecond)
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v\n%s", cmd.ProcessState, out.String())
	}
}

// A launcher that dies without a word (SIGKILL of mpirun) leaves no ranks that train on unseen: they stop in good order.
func TestLauncherGone(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	dir = filepath.Join(dir, "gone")
	self := program(t, "run", recipe, "--set", "run.output_dir="+dir, "--set", "run.steps=100000", "--set", "checkpoint.every_steps=0")
	launcher := exec.Command("/bin/sh", "-c", `RANK=0 LOCAL_RANK=0 "$@" & RANK=1 LOCAL_RANK=1 "$@" & wait`, "sh")
	launcher.Args = append(launcher.Args, self.Args...)
	launcher.Env = append(self.Environ(), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2")
	var out transcript.Buffer
	launcher.Stdout, launcher.Stderr = &out, &out
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	out.WaitFor(t, "Step 1/", 1)
	launcher.Process.Kill()
	launcher.Wait() // until nobody has the output open any more: the ranks have ended
	for _, want := range []string{"the process that started this rank is gone", "is in " + dir} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nobody said %q\n%s", want, tail(out.String()))
		}
	}
}
