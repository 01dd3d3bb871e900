package launch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary plays the ranks and, where the supervisor itself is to die, the supervisor: GOTRAIN_TEST_ROLE says which part.
func TestMain(m *testing.M) {
	if role := os.Getenv("GOTRAIN_TEST_ROLE"); role != "" {
		os.Unsetenv("GOTRAIN_TEST_ROLE")
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

func play(role string) int {
	id, err := Self()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitCode(err)
	}
	verb, arg, _ := strings.Cut(role, ":")
	switch verb {
	case "supervise": // supervise:ranks:role of the ranks
		n, sub, _ := strings.Cut(arg, ":")
		ranks, _ := strconv.Atoi(n)
		err := Supervise(context.Background(), Job{Argv: []string{os.Args[0]}, Ranks: ranks, Grace: 500 * time.Millisecond,
			Env:     append(os.Environ(), "GOTRAIN_TEST_ROLE="+sub),
			started: func(r, pid int) { fmt.Printf("started %d\n", pid) }})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return ExitCode(err)
	case "whoami":
		p, err := Place(id, os.LookupEnv)
		fmt.Printf("%s; %v threads %d procs %d err %v\n", id, p.CPUs, p.Threads, runtime.GOMAXPROCS(0), err)
		return 0
	case "codes": // codes:0,1,75: what each rank exits with
		code, _ := strconv.Atoi(strings.Split(arg, ",")[id.Rank])
		return code
	case "deaf": // ignores TERM; rank 1 fails
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		if id.Rank == 1 {
			time.Sleep(500 * time.Millisecond) // until rank 0 is deaf too
			fmt.Println("boom")
			return 7
		}
		time.Sleep(time.Minute)
	case "stop": // a trainer: stops with 75 when asked
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2)
		fmt.Println("ready")
		s := <-c
		fmt.Printf("got %v\n", s)
		if arg != "" {
			time.Sleep(time.Minute)
		}
		return ExitStopped
	case "chatter":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		for {
			select {
			case <-c:
				return ExitStopped
			case <-time.After(10 * time.Millisecond):
				fmt.Println("still here")
			}
		}
	case "peers": // rank 0 sees its peer go and is quicker to exit than the peer itself
		if id.Rank == 0 {
			fmt.Println("rank 1 is gone")
			return ExitUnavailable
		}
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
		fmt.Println("the real reason")
		return ExitNumerics
	case "storage": // rank 0 cannot write, says so, and is slower to exit than its peer
		if id.Rank == 0 {
			Report(WithCode(ExitStorage, errors.New("write model.safetensors: no space left on device")))
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(100 * time.Millisecond)
			return ExitStorage
		}
		time.Sleep(20 * time.Millisecond)
		Report(WithCode(ExitStorage, WithBlame(errors.New("rank 0 could not write"), 0)))
		return ExitStorage
	case "flood":
		w := bufio.NewWriterSize(os.Stdout, 777)
		for i := range 3000 {
			fmt.Fprintf(w, "%d:%d:%s\n", id.Rank, i, strings.Repeat(string(rune('a'+id.Rank)), 100))
		}
		fmt.Fprint(w, strings.Repeat("x", 3*maxLine))
		w.Flush()
	case "deaf-wait":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		time.Sleep(time.Minute)
	case "wait":
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "child": // leaves a child of its own behind
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			return 1
		}
		fmt.Printf("child %d\n", c.Process.Pid)
	}
	return 0
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// waitFor polls until the text is there.
func (s *syncBuffer) waitFor(t *testing.T, text string, times int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); strings.Count(s.String(), text) < times; {
		if time.Now().After(end) {
			t.Fatalf("no %d × %q in %q", times, text, s.String())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// supervise runs a job of fake ranks in this process.
func supervise(t *testing.T, ctx context.Context, ranks int, role string, change func(*Job)) (out, errs string, err error) {
	t.Helper()
	var o, e syncBuffer
	j := Job{Argv: []string{os.Args[0]}, Ranks: ranks, Env: append(os.Environ(), "GOTRAIN_TEST_ROLE="+role),
		Stdout: &o, Stderr: &e, Grace: 300 * time.Millisecond}
	if change != nil {
		change(&j)
	}
	err = Supervise(ctx, j)
	return o.String(), e.String(), err
}

func TestSuperviseIdentity(t *testing.T) {
	out, errs, err := supervise(t, t.Context(), 2, "whoami", func(j *Job) { j.JobID = "my job" })
	if err != nil || errs != "" {
		t.Fatal(err, errs)
	}
	for _, want := range []string{"\n[rank 1] rank 1 of 2 (local 1 of 2, node 0 of 1) from gotrain, job jmy_job-", "rank 0 of 2 (local 0 of 2"} {
		if !strings.Contains("\n"+out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if cpus := allowed(os.Getpid()); runtime.GOOS == "linux" && len(cpus) >= 2 {
		want := fmt.Sprintf("[%d] threads 1 procs 1 err <nil>", cpus[1])
		if len(cpus) == 2 && !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
		if after := allowed(os.Getpid()); len(after) != len(cpus) {
			t.Errorf("the supervisor itself is bound now: %v", after)
		}
	}
}

func TestSuperviseExitCodes(t *testing.T) {
	for _, c := range []struct {
		codes string
		want  int
		rank  int
	}{
		{"0,0", 0, -1},
		{"75,75", ExitStopped, -1},
		{"0,75", ExitStopped, -1},
		{"0,3", 3, 1},
		{"69,0", ExitUnavailable, 0},
		{"69,76", ExitNumerics, 1},
	} {
		_, _, err := supervise(t, t.Context(), 2, "codes:"+c.codes, nil)
		if got := ExitCode(err); got != c.want {
			t.Errorf("%s: exit code %d, want %d (%v)", c.codes, got, c.want, err)
		}
		var f *Failure
		if errors.As(err, &f) != (c.rank >= 0) || f != nil && f.Rank != c.rank {
			t.Errorf("%s: %v, want a failure of rank %d", c.codes, err, c.rank)
		}
	}
}

func TestSuperviseKilledRank(t *testing.T) {
	var out syncBuffer
	pids := make(chan int, 2)
	go func() {
		<-pids
		victim := <-pids
		out.waitFor(t, "ready", 2)
		syscall.Kill(victim, syscall.SIGKILL)
	}()
	begin := time.Now()
	_, _, err := supervise(t, t.Context(), 2, "stop", func(j *Job) {
		j.Stdout = &out
		j.started = func(_, pid int) { pids <- pid }
	})
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 1 || f.Signal != syscall.SIGKILL || f.ExitCode() != 137 {
		t.Fatalf("got %v", err)
	}
	msg := err.Error()
	for _, want := range []string{"rank 1 failed first: killed by SIGKILL (host ", "  | ready\n", "out-of-memory"} {
		if !strings.Contains(msg, want) {
			t.Errorf("no %q in\n%s", want, msg)
		}
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestSuperviseDeafRankIsKilled(t *testing.T) {
	_, errs, err := supervise(t, t.Context(), 2, "deaf", nil)
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 1 || f.Code != 7 || len(f.Rest) != 1 || !f.Rest[0].ByUs {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(errs, "rank 0 is still running 300ms after") {
		t.Errorf("nothing said about the kill: %s", errs)
	}
	if msg := err.Error(); !strings.Contains(msg, "rank 0 was then killed with SIGKILL by the launcher") || !strings.Contains(msg, "  | boom\nlaunch: rank 0") {
		t.Errorf("wrong report:\n%s", msg)
	}
}

func TestSuperviseSecondaryFailureIsNotFirst(t *testing.T) {
	_, _, err := supervise(t, t.Context(), 2, "peers", nil)
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 1 || f.ExitCode() != ExitNumerics {
		t.Fatalf("got %v", err)
	}
	if len(f.Tail) != 1 || f.Tail[0] != "the real reason" {
		t.Errorf("last lines %q", f.Tail)
	}
	if lines := strings.Split(err.Error(), "\n"); !strings.Contains(lines[len(lines)-1], "rank 1 failed first: exit code 76 (numerics)") {
		t.Errorf("the first failure is not the last line:\n%s", err)
	}
}

func TestSuperviseNamesTheRankWithTheReason(t *testing.T) {
	_, _, err := supervise(t, t.Context(), 2, "storage", func(j *Job) { j.Grace = 10 * time.Second })
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 0 || f.ExitCode() != ExitStorage {
		t.Fatalf("got %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "launch: rank 0 failed first: exit code 74 (storage)") || !strings.HasSuffix(last, ": write model.safetensors: no space left on device") {
		t.Errorf("the reason is not the last line:\n%s", err)
	}
}

func TestSuperviseStopOnCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out syncBuffer
	go func() { out.waitFor(t, "ready", 2); cancel() }()
	_, _, err := supervise(t, ctx, 2, "stop", func(j *Job) { j.Stdout = &out; j.Grace = 10 * time.Second })
	var s *StoppedError
	if !errors.As(err, &s) || s.ExitCode() != ExitStopped || s.Signal != syscall.SIGTERM {
		t.Fatalf("got %v", err)
	}
}

func TestSuperviseStopTakesTooLong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out syncBuffer
	go func() { out.waitFor(t, "ready", 1); cancel() }()
	_, _, err := supervise(t, ctx, 1, "stop:slow", func(j *Job) { j.Stdout = &out })
	var f *Failure
	if !errors.As(err, &f) || f.ExitCode() != ExitTimeout || !strings.Contains(err.Error(), "did not stop within 300ms of SIGTERM and was killed") {
		t.Fatalf("got %v", err)
	}
}

func TestSuperviseFlood(t *testing.T) {
	out, _, err := supervise(t, t.Context(), 3, "flood", func(j *Job) { j.Grace = 30 * time.Second })
	if err != nil {
		t.Fatal(err)
	}
	next := [3]int{}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		rank := 0
		if rest, ok := strings.CutPrefix(line, "[rank "); ok {
			rank, line = int(rest[0]-'0'), rest[3:]
		}
		if strings.HasPrefix(line, "x") {
			if len(line) > maxLine || strings.Trim(line, "x") != "" {
				t.Fatalf("mixed or overlong line of %d bytes", len(line))
			}
			continue
		}
		if want := fmt.Sprintf("%d:%d:%s", rank, next[rank], strings.Repeat(string(rune('a'+rank)), 100)); line != want {
			t.Fatalf("got line %q\nwant %q", line, want)
		}
		next[rank]++
	}
	if next != [3]int{3000, 3000, 3000} {
		t.Errorf("lines by rank: %v", next)
	}
}

func TestSuperviseLeavesNoGrandchildren(t *testing.T) {
	out, _, err := supervise(t, t.Context(), 1, "child", nil)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(out, "child ")))
	if pid == 0 || running(pid) {
		t.Errorf("process %d is left (%q)", pid, out)
	}
}

func TestSuperviseCannotStart(t *testing.T) {
	for _, j := range []Job{
		{},
		{Argv: []string{"true"}, Ranks: 0},
		{Argv: []string{filepath.Join(t.TempDir(), "no such program")}, Ranks: 2},
	} {
		if err := Supervise(t.Context(), j); ExitCode(err) != ExitUsage {
			t.Errorf("%v: %v", j.Argv, err)
		}
	}
}

// running says whether a process exists and is more than a zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// startSupervisor runs a supervisor as a process of its own and returns it with the processes of its ranks.
func startSupervisor(t *testing.T, ranks int, role, ready string, change func(*exec.Cmd)) (*exec.Cmd, *syncBuffer, []int) {
	t.Helper()
	var out syncBuffer
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
	out.waitFor(t, ready, ranks)
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
		{"two ints", "stop:slow", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 130, "second interrupt: killing all ranks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.sigs[0] == syscall.SIGHUP && signal.Ignored(syscall.SIGHUP) {
				t.Skip("started under nohup: SIGHUP is ignored, as the user asked")
			}
			cmd, out, pids := startSupervisor(t, 2, c.role, "ready", nil)
			for i, s := range c.sigs {
				if i > 0 {
					out.waitFor(t, "got interrupt", 2)
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

// A reader that goes away (| head) must not cost the run: the ranks are asked to stop and keep their checkpoint.
func TestSupervisorOutputGone(t *testing.T) {
	var errs syncBuffer
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
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != ExitStopped || !strings.Contains(errs.String(), "nobody reads the output") {
		t.Errorf("exit code %d\n%s", got, errs.String())
	}
}

func TestUnderMpirun(t *testing.T) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("mpirun is not installed")
	}
	if v, _ := exec.Command(mpirun, "--version").Output(); !bytes.Contains(v, []byte("Open MPI")) {
		t.Skip("mpirun is not Open MPI's")
	}
	cmd := exec.CommandContext(t.Context(), mpirun, "--oversubscribe", "-np", "2", os.Args[0])
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_ROLE=whoami", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	jobs := map[string]bool{}
	for i := range 2 {
		prefix := fmt.Sprintf("rank %d of 2 (local %d of 2, node 0 of 1) from openmpi, job ompi-", i, i)
		_, rest, ok := strings.Cut(string(out), prefix)
		if !ok {
			t.Fatalf("no %q in\n%s", prefix, out)
		}
		job, _, _ := strings.Cut(rest, ";")
		jobs[job] = true
	}
	if len(jobs) != 1 {
		t.Errorf("ranks have different job names: %v", jobs)
	}
}
