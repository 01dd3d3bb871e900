package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/internal/transcript"
)

// Tests with several processes start this test binary again; the environment tells the copy what to do.
const (
	envRole = "SHM_TEST_ROLE"
	envJob  = "SHM_TEST_JOB"
	envRank = "SHM_TEST_RANK"
	envSize = "SHM_TEST_SIZE"
	envArg  = "SHM_TEST_ARG"
	envDir  = "SHM_TEST_DIR"
)

// roles are what a copy can do: its error is printed and makes the exit code 1.
var roles = map[string]func(ctx context.Context, cfg Config) error{
	"worker": func(ctx context.Context, cfg Config) error {
		return withComm(ctx, cfg, commtest.Worker)
	},
	"loop": func(ctx context.Context, cfg Config) error { return withComm(ctx, cfg, loop) },
	"busy": func(ctx context.Context, cfg Config) error { return withComm(ctx, cfg, busy) },
	"join": func(ctx context.Context, cfg Config) error { return withComm(ctx, cfg, nil) },
	"bench": func(ctx context.Context, cfg Config) error {
		return errors.Join(pin(cfg.Rank), withComm(ctx, cfg, bench))
	},
}

func TestMain(m *testing.M) {
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	rank, _ := strconv.Atoi(os.Getenv(envRank))
	size, _ := strconv.Atoi(os.Getenv(envSize))
	if err := roles[role](ctx, Config{Job: os.Getenv(envJob), Rank: rank, Size: size, Dir: os.Getenv(envDir)}); err != nil {
		fmt.Println("ERROR", err)
		os.Exit(1)
	}
}

func withComm(ctx context.Context, cfg Config, f func(context.Context, comm.Communicator) error) error {
	c, err := Join(ctx, cfg)
	if err != nil || f == nil {
		return err
	}
	return errors.Join(f(ctx, c), c.Close())
}

// loop reduces for ever, and prints a line at the start.
func loop(ctx context.Context, c comm.Communicator) error {
	m := comm.HostOf(make([]float32, 100000))
	for i := 0; ; i++ {
		if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
			return err
		}
		if i == 10 {
			fmt.Println("LOOPING")
		}
	}
}

// proc is one copy.
type proc struct {
	*exec.Cmd
	out  *transcript.Buffer
	done chan error
}

// expect waits until the copy has printed s.
func (p *proc) expect(t *testing.T, s string) {
	t.Helper()
	p.out.WaitFor(t, s, 1)
}

// wait gives the exit error of the copy, or fails the test after d.
func (p *proc) wait(t *testing.T, d time.Duration) error {
	t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(d):
		t.Fatalf("process %d does not end; it printed %q", p.Process.Pid, p.out)
	}
	return nil
}

func start(t testing.TB, job, role string, rank, size int, env ...string) *proc {
	t.Helper()
	p := &proc{Cmd: exec.Command(os.Args[0]), out: new(transcript.Buffer), done: make(chan error, 1)}
	p.Env = append(os.Environ(), envRole+"="+role, envJob+"="+job, envRank+"="+strconv.Itoa(rank), envSize+"="+strconv.Itoa(size))
	p.Env = append(p.Env, env...)
	p.Stdout, p.Stderr = p.out, p.out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.Wait() }()
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

func jobID(t testing.TB) string {
	return fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

// nothingLeft checks that /dev/shm holds no name of the job.
func nothingLeft(t *testing.T, job string) {
	t.Helper()
	if left := nameOf(job); left != "" {
		t.Errorf("left behind: %v", left)
	}
}

// nameOf is where the file of a job is, or "".
func nameOf(job string) string {
	names, _ := filepath.Glob(fmt.Sprintf("/dev/shm/%s%d*/%s", prefix, os.Geteuid(), job))
	return strings.Join(names, " ")
}

// waitName waits until rank 0 has made the file of a job.
func waitName(t *testing.T, p *proc, job string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); nameOf(job) == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("rank 0 makes no file: %s", p.out)
		}
	}
}

// TestProcesses runs the collectives between processes.
func TestProcesses(t *testing.T) {
	for _, size := range []int{2, 4} {
		if size == 4 && testing.Short() {
			continue
		}
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			job := jobID(t)
			var procs []*proc
			for r := range size {
				procs = append(procs, start(t, job, "worker", r, size))
			}
			for r, p := range procs {
				if err := p.wait(t, 90*time.Second); err != nil {
					t.Errorf("rank %d: %v: %s", r, err, p.out)
				}
			}
			nothingLeft(t, job)
		})
	}
}

// TestKilled kills one of three processes; the others must name it within a second or so.
func TestKilled(t *testing.T) {
	job := jobID(t)
	var procs []*proc
	for r := range 3 {
		procs = append(procs, start(t, job, "loop", r, 3))
	}
	for _, p := range procs {
		p.expect(t, "LOOPING")
	}
	nothingLeft(t, job) // while it runs
	begin := time.Now()
	procs[1].Process.Kill()
	for _, r := range []int{0, 2} {
		if err := procs[r].wait(t, 10*time.Second); err == nil {
			t.Errorf("rank %d ends without an error", r)
		}
		if out := procs[r].out.String(); !strings.Contains(out, "rank 1 is gone") {
			t.Errorf("rank %d does not name rank 1: %s", r, out)
		}
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	nothingLeft(t, job)
}

// TestLeftover kills rank 0 while it waits for the others: the name it leaves must not interfere with the next job, whether
// it has the same id or another.
func TestLeftover(t *testing.T) {
	job := jobID(t)
	orphan := func() {
		p := start(t, job, "join", 0, 2)
		waitName(t, p, job)
		p.Process.Kill()
		p.wait(t, 5*time.Second)
		if nameOf(job) == "" {
			t.Fatal("the test expects a leftover")
		}
	}
	orphan()
	one, zero := start(t, job, "join", 1, 2), (*proc)(nil)
	time.Sleep(100 * time.Millisecond) // rank 1 meets the leftover first
	zero = start(t, job, "join", 0, 2)
	for _, p := range []*proc{zero, one} {
		if err := p.wait(t, 20*time.Second); err != nil {
			t.Errorf("%v: %s", err, p.out)
		}
	}
	nothingLeft(t, job)

	orphan()
	p := start(t, job+"-other", "join", 0, 1)
	if err := p.wait(t, 20*time.Second); err != nil {
		t.Errorf("%v: %s", err, p.out)
	}
	nothingLeft(t, job)
}

// TestJoinErrors tests errors when ranks meet.
func TestJoinErrors(t *testing.T) {
	job := jobID(t)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	wants := func(name string, err error, parts ...string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", name)
			return
		}
		for _, s := range parts {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q lacks %q", name, err, s)
			}
		}
	}
	_, err := Join(short(), Config{Job: job, Rank: 1, Size: 2})
	wants("no rank 0", err, "rank 1", "ranks [0]")
	_, err = Join(short(), Config{Job: job, Rank: 0, Size: 3})
	wants("alone", err, "rank 0", "ranks [1 2]")
	nothingLeft(t, job)
	_, err = Join(short(), Config{Job: "a/b", Rank: 0, Size: 3})
	wants("slash", err, "hint")
	_, err = Join(short(), Config{Job: job, Rank: 3, Size: 3})
	wants("rank", err, "rank 3")
	_, err = Join(short(), Config{Job: job, Rank: 0, Size: 1, Dir: "/proc"})
	wants("dir", err, "/proc", "hint")

	// With rank 0 waiting: another size, another rank 0.
	p := start(t, job, "join", 0, 2)
	waitName(t, p, job)
	_, err = Join(short(), Config{Job: job, Rank: 1, Size: 3})
	wants("size", err, "2 ranks", "hint")
	_, err = Join(short(), Config{Job: job, Rank: 0, Size: 2})
	wants("second rank 0", err, strconv.Itoa(p.Process.Pid), "hint")
	c, err := Join(context.Background(), Config{Job: job, Rank: 1, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := p.wait(t, 20*time.Second); err != nil {
		t.Error(err, p.out)
	}
}
