package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/procfs"
	"github.com/gotrain/gotrain/internal/transcript"
)

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	p, err := procfs.Read(pid)
	return err == nil && !p.Ended()
}

// startSupervisor runs a supervisor as a separate process and returns it with the processes of its ranks.
func startSupervisor(t *testing.T, ranks int, role, ready string, change func(*exec.Cmd)) (*exec.Cmd, *transcript.Buffer, []int) {
	t.Helper()
	var out transcript.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOTRAIN_TEST_ROLE=supervise:%d:%s", ranks, role))
	cmd.Stdout, cmd.Stderr = &out, &out
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.WaitFor(t, ready, ranks)
	var pids []int
	for line := range strings.Lines(out.String()) {
		if v, ok := strings.CutPrefix(line, "started "); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(v))
			pids = append(pids, pid)
		}
	}
	if len(pids) != ranks {
		t.Fatalf("ranks %v in %q", pids, out.String())
	}
	return cmd, &out, pids
}

func TestKilledSupervisorLeavesNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the parent-death signal is Linux's")
	}
	cmd, _, pids := startSupervisor(t, 3, "deaf-wait", "started", nil)
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, p := range pids {
			if running(p) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v still run", left, pids)
		}
	}
}

// The parent-death signal reaches the ranks; the guard kills what they started.
func TestKilledSupervisorLeavesNoGrandchildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc to look into")
	}
	cmd, out, pids := startSupervisor(t, 2, "shell", "inner ", nil)
	for line := range strings.Lines(out.String()) {
		if _, v, ok := strings.Cut(line, "inner "); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(v))
			pids = append(pids, pid)
		}
	}
	guards := children(cmd.Process.Pid)
	if len(pids) != 4 || len(guards) != 3 {
		t.Fatalf("processes %v, children %v", pids, guards)
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
	for _, p := range append(pids, guards...) {
		for end := time.Now().Add(10 * time.Second); running(p); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d still runs", p)
			}
		}
	}
}

// children lists the processes that a process started.
func children(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for f := range strings.FieldsSeq(string(b)) {
			c, _ := strconv.Atoi(f)
			out = append(out, c)
		}
	}
	return out
}

// state is the state of a process: R, S, T, …
func state(pid int) string {
	p, err := procfs.Read(pid)
	if err != nil {
		return "?"
	}
	return p.State
}

// Ctrl-Z suspends the ranks with the supervisor, and fg resumes all.
func TestSupervisorPauses(t *testing.T) {
	if runtime.GOOS != "linux" || signal.Ignored(syscall.SIGTSTP) {
		t.Skip("no /proc, or no job control here")
	}
	cmd, out, pids := startSupervisor(t, 2, "stop", "ready", nil)
	await := func(stopped bool) {
		t.Helper()
		for _, p := range append(pids, cmd.Process.Pid) {
			for end := time.Now().Add(20 * time.Second); (state(p) == "T") != stopped; time.Sleep(2 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("process %d is in state %s", p, state(p))
				}
			}
		}
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGTSTP)
	await(true)
	syscall.Kill(cmd.Process.Pid, syscall.SIGCONT)
	await(false)
	syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != ExitStopped {
		t.Errorf("exit code %d\n%s", got, out)
	}
}

// Signals that come together are one request; HUP asks once only.
func TestRequests(t *testing.T) {
	const i, u, h = syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP
	for _, c := range []struct {
		sigs []syscall.Signal
		at   []float64 // seconds
		want int
	}{
		{[]syscall.Signal{i}, []float64{0}, 1},
		{[]syscall.Signal{i, i, i}, []float64{0, 0.5, 0.99}, 1},
		{[]syscall.Signal{i, i, i}, []float64{0, 1.5, 2.4}, 2},
		{[]syscall.Signal{i, i, i}, []float64{0, 1.5, 2.6}, 3},
		{[]syscall.Signal{h, h, i}, []float64{0, 5, 10}, 2},
		{[]syscall.Signal{u, u, i}, []float64{0, 5, 5.1}, 1},
	} {
		s := &supervisor{Job: Job{apart: oneRequest, Grace: time.Minute}, console: newConsole(io.Discard, io.Discard)}
		begin := time.Now()
		for k, sig := range c.sigs {
			s.signal(sig, begin.Add(time.Duration(c.at[k]*float64(time.Second))))
		}
		s.console.close(closedChan)
		if s.requests != c.want || s.killed != (c.want == killRequests) {
			t.Errorf("%v at %v: %d requests, killed %v", c.sigs, c.at, s.requests, s.killed)
		}
	}
}

func TestSupervisorSignals(t *testing.T) {
	for _, c := range []struct {
		name, role string
		sigs       []syscall.Signal
		want       int
		text       string
	}{
		{"term", "stop", []syscall.Signal{syscall.SIGTERM}, ExitStopped, "got terminated"},
		{"int", "stop", []syscall.Signal{syscall.SIGINT}, ExitStopped, "got interrupt"},
		{"usr1", "stop", []syscall.Signal{syscall.SIGUSR1}, ExitStopped, "got user defined signal 1"},
		{"usr2", "stop", []syscall.Signal{syscall.SIGUSR2}, ExitStopped, "got user defined signal 2"},
		{"hup has no handler", "wait", []syscall.Signal{syscall.SIGHUP}, 129, "ended by SIGHUP without a checkpoint"},
		{"three ints", "stop:slow", []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGINT}, 130, "third stop request (SIGINT): killing the ranks"},
		{"int, then terms", "stop:slow", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGTERM}, 143, "ended by SIGTERM without a checkpoint"},
		{"the second is passed on", "stop:twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, ExitStopped, "and interrupt"},
		{"a saving rank outlives the grace time", "saving", []syscall.Signal{syscall.SIGTERM}, ExitStopped, "waiting for rank 0: saving"},
		{"quit", "wait", []syscall.Signal{syscall.SIGQUIT}, 131, "ended by SIGQUIT without a checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.sigs[0] == syscall.SIGHUP && signal.Ignored(syscall.SIGHUP) {
				t.Skip("started under nohup: SIGHUP is ignored, as the user asked")
			}
			cmd, out, pids := startSupervisor(t, 2, c.role, "ready", nil)
			for i, s := range c.sigs {
				switch i {
				case 1:
					out.WaitFor(t, "got interrupt", 2)
				case 2:
					out.WaitFor(t, "second stop request", 1)
				}
				syscall.Kill(cmd.Process.Pid, s)
			}
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.want || !strings.Contains(out.String(), c.text) {
				t.Errorf("exit code %d, want %d, with %q in\n%s", got, c.want, c.text, out)
			}
			for _, p := range pids {
				if running(p) {
					t.Errorf("process %d is left", p)
				}
			}
		})
	}
}

// A reader that exits (| head) costs lines, not the run: the ranks continue until a stop request.
func TestSupervisorOutputGone(t *testing.T) {
	var errs transcript.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_ROLE=supervise:2:chatter")
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines, seen := bufio.NewScanner(out), map[string]bool{}; len(seen) < 2 && lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "still here") {
			seen[lines.Text()] = true
		}
	}
	out.Close()
	errs.WaitFor(t, "cannot write to stdout", 1)
	syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != ExitStopped || strings.Count(errs.String(), "broken pipe; the ranks continue") != 1 {
		t.Errorf("exit code %d\n%s", got, errs.String())
	}
}

// A guard kills the groups that it was given and that were not taken back.
func TestGuardForgets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc to look into")
	}
	g, err := NewGuard()
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for range 3 {
		c := exec.Command("sleep", "60")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		g.Watch(c.Process.Pid)
		all = append(all, c)
	}
	g.Forget(all[1].Process.Pid)
	g.to.Close() // as the kernel does when the supervisor dies
	_ = g.cmd.Wait()
	for i, want := range []bool{false, true, false} {
		pid := all[i].Process.Pid
		for end := time.Now().Add(10 * time.Second); running(pid) && !want && time.Now().Before(end); {
			time.Sleep(2 * time.Millisecond)
		}
		if running(pid) != want {
			t.Errorf("process %d runs: %v, want %v", i, running(pid), want)
		}
		_ = all[i].Process.Kill()
		_ = all[i].Wait()
	}
}
