package meet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// memberVar makes the test binary a rank: "rank world address heartbeat-ms interface".
const memberVar = "MEET_TEST_MEMBER"

func TestMain(m *testing.M) {
	if v := os.Getenv(memberVar); v != "" {
		os.Exit(memberMain(v))
	}
	os.Exit(m.Run())
}

// memberMain is a rank in a process of its own. It prints "up", then either "down" and the cause, or after a line on stdin "left".
func memberMain(v string) int {
	var c Config
	var beat int
	if _, err := fmt.Sscan(v, &c.Rank, &c.World, &c.Place.Addr, &beat); err != nil {
		fmt.Println(err)
		return 2
	}
	c.LocalRank, c.LocalWorld, c.Node, c.Nodes, c.Job, c.Token = -1, -1, -1, 2, "processes", []byte("a secret of the test")
	c.Host, c.Machine, c.Heartbeat = fmt.Sprint("h", c.Rank), fmt.Sprint("m", c.Rank), time.Duration(beat)*time.Millisecond
	c.Timeouts.Start, c.Timeouts.Mesh = 30*time.Second, 8*time.Second
	c.Ports = [2]int{30000, 30010}
	c.Waiting = func(s string) { fmt.Println("waiting:", s) }
	c.Warn = func(s string) { fmt.Println("warning:", s) }
	g, err := Join(context.Background(), c)
	if err == nil {
		if _, err = g.Connect(context.Background(), 1, all(c.World)); err != nil {
			defer g.Close()
		}
	}
	if err != nil {
		fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", " | "))
		return 1
	}
	fmt.Println("up", g.Address())
	leave := make(chan bool)
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		close(leave)
	}()
	select {
	case <-leave:
		g.Close()
		if err := g.Err(); err != nil {
			fmt.Println("failed:", err)
			return 1
		}
		fmt.Println("left")
		return 0
	case <-g.Down():
		var f *Fault
		errors.As(g.Err(), &f)
		fmt.Printf("down %d %s\n", f.Rank, f)
		g.Close()
		return 69
	}
}

// member is such a process.
type member struct {
	t     *testing.T
	rank  int
	cmd   *exec.Cmd
	in    io.Closer
	lines chan string
}

// start starts a rank; before is a command that runs it, such as ip netns exec.
func start(t *testing.T, rank, world int, addr string, beat int, before ...string) *member {
	argv := append(before, os.Args[0])
	m := &member{t: t, rank: rank, cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 100)}
	m.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s %d", memberVar, rank, world, addr, beat))
	m.cmd.Stderr = os.Stderr
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		m.in, err = m.cmd.StdinPipe()
	}
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			m.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		m.cmd.Process.Signal(syscall.SIGCONT)
		m.cmd.Process.Kill()
		m.cmd.Wait()
	})
	return m
}

// expect waits for a line that begins so; others are logged.
func (m *member) expect(prefix string) string {
	m.t.Helper()
	for late := time.After(40 * time.Second); ; {
		select {
		case line, ok := <-m.lines:
			switch {
			case strings.HasPrefix(line, prefix):
				return line
			case !ok:
				m.t.Fatalf("rank %d ended without %q", m.rank, prefix)
			}
			m.t.Logf("rank %d: %s", m.rank, line)
		case <-late:
			m.t.Fatalf("rank %d does not say %q", m.rank, prefix)
		}
	}
}

func (m *member) signal(s syscall.Signal) { m.cmd.Process.Signal(s) }

// startAll starts the ranks of a job on this host.
func startAll(t *testing.T, world, beat int) (list []*member) {
	addr := "127.0.0.1:" + freePort(t)
	for r := range world {
		list = append(list, start(t, r, world, addr, beat))
	}
	for _, m := range list {
		m.expect("up ")
	}
	return list
}

// noticed checks that all members but one say the same about it, and returns how long that took.
func noticed(t *testing.T, list []*member, rank int, reason string, bound time.Duration) {
	t.Helper()
	begun := time.Now()
	for _, m := range list {
		if m.rank == rank {
			continue
		}
		want := fmt.Sprintf("down %d meet: rank %d on host h%d failed: ", rank, rank, rank)
		if line := m.expect("down "); !strings.HasPrefix(line, want) || !strings.Contains(line, reason) {
			t.Errorf("rank %d: %s\nwant %s%s", m.rank, line, want, reason)
		}
	}
	d := time.Since(begun)
	t.Logf("noticed by all after %v", d.Round(time.Millisecond))
	if d > bound {
		t.Errorf("noticed after %v, want less than %v", d, bound)
	}
}

func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{0, 2} {
		list := startAll(t, 3, 500)
		list[rank].signal(syscall.SIGKILL)
		noticed(t, list, rank, "its process ended without giving a reason", 10*time.Second)
	}
}

// A stopped process still has a kernel that acknowledges: only heartbeats notice it.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{0, 2} {
		list := startAll(t, 3, 100)
		list[rank].signal(syscall.SIGSTOP)
		noticed(t, list, rank, "no sign of life for 800ms", 20*time.Second)
		if rank == 2 { // once it continues, it learns that the others have given it up
			list[rank].signal(syscall.SIGCONT)
			list[rank].expect("down ")
		}
	}
}

// A job that is suspended as a whole, for longer than the limit of silence, goes on.
func TestSuspendedJob(t *testing.T) {
	t.Parallel()
	list := startAll(t, 3, 100)
	for _, m := range list {
		m.signal(syscall.SIGSTOP)
	}
	time.Sleep(3 * time.Second)
	for _, m := range list {
		m.signal(syscall.SIGCONT)
	}
	time.Sleep(500 * time.Millisecond)
	for _, m := range list {
		m.in.Close()
	}
	for _, m := range list {
		m.expect("left")
	}
}
