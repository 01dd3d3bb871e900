package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/launch/hosts"
	"github.com/gotrain/gotrain/internal/procfs"
	"github.com/gotrain/gotrain/internal/transcript"
)

// The test binary plays agents (as hcclrun does) and ranks.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "--agent" {
		if os.Getenv("GOTRAIN_TEST_MUTE") != "" { // an ssh that hangs
			time.Sleep(time.Minute)
		}
		if err := Serve(context.Background(), os.Stdin, os.Stdout, Serving{silence: 3 * time.Second}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(launch.ExitCode(err))
		}
		os.Exit(0)
	}
	if role := os.Getenv("GOTRAIN_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is a rank.
func play(role string) int {
	id, err := launch.Self()
	if err != nil {
		fmt.Println(err)
		return launch.ExitCode(err)
	}
	verb, arg, _ := strings.Cut(role, ":")
	switch verb {
	case "who":
		fmt.Printf("%s master %s:%d token %d restart %d pid %d\n", id, id.MasterAddr, id.MasterPort, len(os.Getenv(launch.TokenVar)), id.Restart, os.Getpid())
	case "leak":
		fmt.Println("the token is", os.Getenv(launch.TokenVar))
	case "wait": // until asked, with a child in a shell
		c := make(chan os.Signal, 4)
		ossignal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
		fmt.Printf("rank %d pid %d\n", id.Rank, os.Getpid())
		fmt.Printf("got %v\n", <-c)
		if arg == "twice" {
			fmt.Printf("and %v\n", <-c)
		}
		return launch.ExitStopped
	case "deaf":
		ossignal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Printf("rank %d pid %d\n", id.Rank, os.Getpid())
		time.Sleep(time.Minute)
	case "fail": // fail:rank:code
		var rank, code int
		fmt.Sscanf(arg, "%d:%d", &rank, &code)
		if id.Rank == rank {
			launch.Report(launch.WithCode(code, errors.New("the reason of "+fmt.Sprint(rank))))
			return code
		}
		time.Sleep(50 * time.Millisecond)
		launch.Report(launch.WithCode(launch.ExitUnavailable, launch.WithBlame(errors.New("a peer is gone"), rank)))
		return launch.ExitUnavailable
	case "flaky": // fails in the first start only
		if id.Restart == 0 && id.Rank == 1 {
			return launch.ExitUnavailable
		}
		if id.Restart == 0 {
			time.Sleep(time.Minute)
		}
		fmt.Printf("rank %d start %d\n", id.Rank, id.Restart)
	case "flood":
		for i := range 20000 {
			fmt.Printf("%d:%d:%s\n", id.Rank, i, strings.Repeat(string(rune('a'+id.Rank)), 100))
		}
	}
	return 0
}

// pids are the processes of ranks that said so.
func pids(said string) (out []int) {
	for line := range strings.Lines(said) {
		var pid int
		if _, rest, ok := strings.Cut(line, " pid "); ok {
			if n, _ := fmt.Sscan(rest, &pid); n == 1 {
				out = append(out, pid)
			}
		}
	}
	return out
}

// shell writes a script that runs its arguments behind the first, as ssh would.
func shell(t *testing.T, body string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reach")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nhost=$1; shift\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// target is an agent of this test binary.
func target(t *testing.T, name string, rsh []string) Target {
	t.Helper()
	return Target{Host: hosts.Host{Name: name}, Program: os.Args[0], Rsh: rsh, Grace: 300 * time.Millisecond}
}

// connected returns agents that run.
func connected(t *testing.T, rsh []string, names ...string) []*Agent {
	t.Helper()
	var out []*Agent
	for _, n := range names {
		a := New(target(t, n, rsh))
		if err := a.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		out = append(out, a)
	}
	return out
}

// crewOf is a job on agents, with two ranks each.
func crewOf(role string, out *transcript.Buffer, agents ...*Agent) launch.Job {
	j := launch.Job{Argv: []string{os.Args[0]}, Env: append(os.Environ(), "GOTRAIN_TEST_ROLE="+role), Stdout: out, Stderr: out,
		Grace: 300 * time.Millisecond, Token: "s3cr3t-s3cr3t"}
	for _, a := range agents {
		j.Hosts = append(j.Hosts, launch.Team{Host: a, Ranks: 2})
	}
	return j
}

// gone waits for the end of processes.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if p, err := procfs.Read(pid); err != nil || p.Ended() {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("process %d still runs", pid)
			}
		}
	}
}

func TestRanksOnTwoHosts(t *testing.T) {
	var out transcript.Buffer
	// What a login shell prints does not disturb.
	agents := connected(t, shell(t, `echo "Welcome to $host"; printf 'no end of line'; exec "$@"`), "n1", "n2")
	j := crewOf("who", &out, agents...)
	j.Master = func(context.Context) (string, int, error) { return "10.1.2.3", 4567, nil }
	if err := launch.Supervise(t.Context(), j); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"rank 0 of 4 (local 0 of 2, node 0 of 2) from gotrain", "\n[n1 1] rank 1 of 4 (local 1 of 2, node 0 of 2)",
		"\n[n2 2] rank 2 of 4 (local 0 of 2, node 1 of 2)", "\n[n2 3] rank 3 of 4 (local 1 of 2, node 1 of 2)", "master 10.1.2.3:4567 token 13 restart 0",
	} {
		if !strings.Contains("\n"+out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestFirstFailureAcrossHosts(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	var out transcript.Buffer
	err := launch.Supervise(t.Context(), crewOf("fail:3:76", &out, agents...))
	var f *launch.Failure
	if !errors.As(err, &f) || f.Rank != 3 || f.Host != "n2" || f.ExitCode() != 76 || !strings.Contains(err.Error(), "the reason of 3") {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// The agents stay, and serve the next job.
	err = launch.Supervise(t.Context(), crewOf("fail:0:74", &out, agents...))
	if !errors.As(err, &f) || f.Rank != 0 || f.Host != "n1" || f.ExitCode() != 74 {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestStopAcrossHosts(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	var out transcript.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	go func() { out.WaitFor(t, " pid ", 4); cancel() }()
	j := crewOf("wait", &out, agents...)
	j.Grace = 20 * time.Second
	err := launch.Supervise(ctx, j)
	if launch.ExitCode(err) != launch.ExitStopped || strings.Count(out.String(), "got terminated") != 4 {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestFloodFromTwoHosts(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	var out transcript.Buffer
	if err := launch.Supervise(t.Context(), crewOf("flood", &out, agents...)); err != nil {
		t.Fatal(err)
	}
	next := [4]int{}
	for line := range strings.Lines(out.String()) {
		if _, rest, ok := strings.Cut(line, "] "); ok {
			line = rest
		}
		rank := int(line[0] - '0')
		if want := fmt.Sprintf("%d:%d:%s\n", rank, next[rank], strings.Repeat(string(rune('a'+rank)), 100)); line != want {
			t.Fatalf("got %q\nwant %q", line, want)
		}
		next[rank]++
	}
	if next != [4]int{20000, 20000, 20000, 20000} {
		t.Errorf("lines by rank: %v", next)
	}
}

func TestRestartAcrossHosts(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	var out transcript.Buffer
	j := crewOf("flaky", &out, agents...)
	j.Restarts = 1
	if err := launch.Supervise(t.Context(), j); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := out.String(); strings.Count(got, " start 1\n") != 4 || !strings.Contains(got, "restart 1 of 1: all ranks start again in 1s") {
		t.Errorf("%s", got)
	}
}

func TestTheTokenIsNotPrinted(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1")
	var out transcript.Buffer
	if err := launch.Supervise(t.Context(), crewOf("leak", &out, agents...)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "s3cr3t") || strings.Count(got, "the token is [token]\n") != 2 {
		t.Errorf("%s", got)
	}
}

// Whoever dies, no rank is left.
func TestNobodyIsLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		rsh  string
		kill func(a *Agent, agent int) int // the process to kill
		says string
	}{
		{"agent", `"$@"; exit $?`, func(_ *Agent, agent int) int { return agent }, "host n2 was lost"},
		{"ssh", `"$@"; exit $?`, func(a *Agent, _ int) int { return a.PID() }, "host n2 was lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			agents := connected(t, shell(t, c.rsh), "n1", "n2")
			var out transcript.Buffer
			victim := c.kill(agents[1], agentOf(t, agents[1]))
			ended := make(chan error, 1)
			go func() { ended <- launch.Supervise(t.Context(), crewOf("deaf", &out, agents...)) }()
			out.WaitFor(t, " pid ", 4)
			ranks := pids(out.String())
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			var f *launch.Failure
			if !errors.As(err, &f) || f.Host != "n2" || f.ExitCode() != launch.ExitUnavailable || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\n%s", err, out.String())
			}
			gone(t, ranks...)
		})
	}
}

// agentOf returns the process of an agent, which is a child of ssh.
func agentOf(t *testing.T, a *Agent) int {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.PID()))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		var pid int
		if n, _ := fmt.Sscan(string(b), &pid); n == 1 {
			return pid
		}
	}
	t.Fatal("no agent")
	return 0
}
