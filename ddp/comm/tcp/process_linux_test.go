package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/meet"
	"github.com/gotrain/gotrain/internal/transcript"
)

// Tests with several processes start this test binary again; the environment tells the copy what to do.
const (
	envRole  = "TCP_TEST_ROLE"
	envRank  = "TCP_TEST_RANK"
	envWorld = "TCP_TEST_WORLD"
	envAddr  = "TCP_TEST_ADDR"
)

// roles are what a copy can do: its error is printed and makes the exit code 1.
var roles = map[string]func(ctx context.Context, c *Comm) error{
	"worker": func(ctx context.Context, c *Comm) error { return commtest.Worker(ctx, c) },
	"loop":   loop,
	"bench":  bench,
}

func TestMain(m *testing.M) {
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Println("ERROR", err)
		os.Exit(1)
	}
}

func play(role string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	rank, _ := strconv.Atoi(os.Getenv(envRank))
	world, _ := strconv.Atoi(os.Getenv(envWorld))
	g, err := meet.Join(ctx, meet.Config{Rank: rank, World: world, LocalRank: -1, LocalWorld: -1, Node: -1, Nodes: -1, Job: "tcp-test",
		Token: []byte("a token of the tests"), Place: meet.Place{Addr: os.Getenv(envAddr)}, Version: "test"})
	if err != nil {
		return err
	}
	c, err := Open(ctx, Config{Control: g})
	if err != nil {
		return errors.Join(err, g.Close())
	}
	return errors.Join(roles[role](ctx, c), c.Close(), g.Close())
}

// loop reduces for ever, and prints a line at the start.
func loop(ctx context.Context, c *Comm) error {
	m := comm.HostOf(make([]float32, 100000))
	for i := 0; ; i++ {
		short, cancel := comm.Patient(ctx, 20*time.Second, 30*time.Second)
		err := comm.Wait(short)(c.AllReduce(short, m, comm.Sum))
		cancel()
		if err != nil {
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
func (p *proc) expect(t testing.TB, s string) {
	t.Helper()
	p.out.WaitFor(t, s, 1)
}

// wait gives the exit error of the copy, or fails the test after d.
func (p *proc) wait(t testing.TB, d time.Duration) error {
	t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(d):
		t.Fatalf("process %d does not end; it printed %q", p.Process.Pid, p.out)
	}
	return nil
}

// start begins world copies. prefix are the words of a command that starts each, by rank.
func start(t testing.TB, role string, world int, addr string, prefix func(rank int) []string) []*proc {
	t.Helper()
	if addr == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = l.Addr().String()
		l.Close()
	}
	var procs []*proc
	for r := range world {
		words := []string{os.Args[0]}
		if prefix != nil {
			words = append(prefix(r), words...)
		}
		p := &proc{Cmd: exec.Command(words[0], words[1:]...), out: &transcript.Buffer{}, done: make(chan error, 1)}
		p.Env = append(os.Environ(), envRole+"="+role, envRank+"="+strconv.Itoa(r), envWorld+"="+strconv.Itoa(world), envAddr+"="+addr)
		p.Stdout, p.Stderr = p.out, p.out
		p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { p.done <- p.Wait() }()
		t.Cleanup(func() { p.Process.Kill() })
		procs = append(procs, p)
	}
	return procs
}

// TestProcesses runs the collectives between processes that met at a real rendezvous.
func TestProcesses(t *testing.T) {
	for _, world := range []int{2, 4} {
		if world == 4 && testing.Short() {
			continue
		}
		t.Run(strconv.Itoa(world), func(t *testing.T) {
			for r, p := range start(t, "worker", world, "", nil) {
				if err := p.wait(t, 90*time.Second); err != nil {
					t.Errorf("rank %d: %v: %s", r, err, p.out)
				}
			}
		})
	}
}

// TestKilled kills one of three processes; the others must name it.
func TestKilled(t *testing.T) {
	for _, victim := range []int{1, 0} { // rank 0 is the coordinator
		procs := start(t, "loop", 3, "", nil)
		for _, p := range procs {
			p.expect(t, "LOOPING")
		}
		begin := time.Now()
		procs[victim].Process.Kill()
		for r, p := range procs {
			if r == victim {
				continue
			}
			if err := p.wait(t, 20*time.Second); err == nil {
				t.Errorf("rank %d ends without an error", r)
			}
			if out := p.out.String(); !strings.Contains(out, fmt.Sprintf("rank %d is gone", victim)) {
				t.Errorf("rank %d does not name rank %d: %s", r, victim, out)
			}
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	}
}
