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
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/transcript"
)

// The test binary plays the ranks and, if the supervisor itself is to die, the supervisor: GOTRAIN_TEST_ROLE selects the role.
func TestMain(m *testing.M) {
	if role := os.Getenv("GOTRAIN_TEST_ROLE"); role != "" {
		os.Unsetenv("GOTRAIN_TEST_ROLE")
		os.Exit(play(role))
	}
	if signal.Ignored(syscall.SIGINT) { // by a shell that started the tests in the background; the processes of the tests would inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	os.Unsetenv("GOMAXPROCS") // a launcher sets it only where the user did not
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
		grace := time.Minute
		if sub == "saving" {
			grace = 50 * time.Millisecond
		}
		ranks, _ := strconv.Atoi(n)
		err := Supervise(context.Background(), Job{Argv: []string{os.Args[0]}, Ranks: ranks, Grace: grace, apart: time.Nanosecond,
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
		switch arg {
		case "twice":
			fmt.Printf("and %v\n", <-c)
		case "slow":
			time.Sleep(time.Minute)
		}
		return ExitStopped
	case "shelled": // behind a shell: saves for a while when asked, or ignores the request
		if arg == "deaf" {
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("ready")
			time.Sleep(time.Minute)
			return 0
		}
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		time.Sleep(300 * time.Millisecond)
		fmt.Println("saved")
		code, _ := strconv.Atoi(arg)
		Report(WithCode(code, errors.New("stopped")))
		return code
	case "saving": // for longer than the grace time
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		if id.Rank == 0 {
			done := Busy("saving")
			time.Sleep(300 * time.Millisecond)
			done()
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
	case "frozen": // rank 1 is suspended, and rank 0 gives it up
		if id.Rank == 1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			return 0
		}
		Report(WithBlame(errors.New("rank 1 is gone: no sign of life"), 1))
		return ExitUnavailable
	case "storage": // rank 0 cannot write, says so, and is slower to exit than its peer; arg is a file that it makes when it has said so
		if id.Rank == 0 {
			signal.Ignore(syscall.SIGTERM)
			Report(WithCode(ExitStorage, errors.New("write model.safetensors: no space left on device")))
			if err := os.WriteFile(arg, nil, 0o600); err != nil {
				fmt.Println(err)
			}
			time.Sleep(100 * time.Millisecond)
			return ExitStorage
		}
		for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(arg); err == nil {
				break
			}
		}
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
	case "shell": // a shell that waits for a program, which knows nothing of the supervisor
		c := exec.Command("sh", "-c", "sleep 60 & echo inner $!; wait")
		c.Stdout = os.Stdout
		fmt.Println(c.Run())
	case "broken": // writes to a pipe without a reader
		if arg == "outlive" {
			OutliveReaders()
		}
		for range 3 {
			fmt.Fprintln(NewStream(os.Stdout), "words")
		}
	case "child": // leaves a child of its own behind
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			return 1
		}
		fmt.Printf("child %d\n", c.Process.Pid)
	}
	return 0
}

// supervise runs a job of fake ranks in this process.
func supervise(t *testing.T, ctx context.Context, ranks int, role string, change func(*Job)) (out, errs string, err error) {
	t.Helper()
	var o, e transcript.Buffer
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
	var out transcript.Buffer
	pids := make(chan int, 2)
	go func() {
		<-pids
		victim := <-pids
		out.WaitFor(t, "ready", 2)
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
	if msg := err.Error(); !strings.Contains(msg, "rank 0 was then killed with SIGKILL by the launcher") ||
		!strings.Contains(msg, "  | boom\nlaunch: rank 0") {
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

// A rank that hangs, and that all others gave up, is not waited for as long as one that may be saving.
func TestSuperviseFrozenRankIsKilledSoon(t *testing.T) {
	begin := time.Now()
	_, errs, err := supervise(t, t.Context(), 2, "frozen", func(j *Job) { j.Grace, j.thaw = time.Minute, 100*time.Millisecond })
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 1 || f.By == nil || f.ExitCode() != ExitUnavailable || time.Since(begin) > 30*time.Second {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	if !strings.Contains(errs, "rank 1 is still running 100ms after") ||
		!strings.Contains(err.Error(), "\nhint: a process that gives no sign of life is suspended") {
		t.Errorf("said %q, reported:\n%v", errs, err)
	}
}

func TestSuperviseNamesTheRankWithTheReason(t *testing.T) {
	_, _, err := supervise(t, t.Context(), 2, "storage:"+filepath.Join(t.TempDir(), "said"), func(j *Job) { j.Grace = 10 * time.Second })
	var f *Failure
	if !errors.As(err, &f) || f.Rank != 0 || f.ExitCode() != ExitStorage {
		t.Fatalf("got %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "launch: rank 0 failed first: exit code 74 (storage)") ||
		!strings.HasSuffix(last, ": write model.safetensors: no space left on device") {
		t.Errorf("the reason is not the last line:\n%s", err)
	}
}

func TestSuperviseStopOnCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out transcript.Buffer
	go func() { out.WaitFor(t, "ready", 2); cancel() }()
	_, _, err := supervise(t, ctx, 2, "stop", func(j *Job) { j.Stdout = &out; j.Grace = 10 * time.Second })
	var s *StoppedError
	if !errors.As(err, &s) || s.ExitCode() != ExitStopped || s.Signal != syscall.SIGTERM {
		t.Fatalf("got %v", err)
	}
}

func TestSuperviseStopTakesTooLong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out transcript.Buffer
	go func() { out.WaitFor(t, "ready", 1); cancel() }()
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
