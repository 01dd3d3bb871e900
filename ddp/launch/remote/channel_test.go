package remote

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/procfs"
	"github.com/gotrain/gotrain/internal/transcript"
)

// recorder is what a supervisor hears. Output waits for hold.
type recorder struct {
	mu    sync.Mutex
	hold  chan struct{}
	lines bytes.Buffer
	live  []string
	said  []string
	exits chan launch.Outcome
	lost  chan error
}

func newRecorder() *recorder {
	return &recorder{exits: make(chan launch.Outcome, 8), lost: make(chan error, 1)}
}

func (r *recorder) Output(_ int, _ bool, lines []byte) {
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines.Write(lines)
}

func (r *recorder) Progress(_ int, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = append(r.live, string(text))
}

func (r *recorder) Record(int, launch.Record, time.Duration) {}
func (r *recorder) Exit(o launch.Outcome, _ time.Duration)   { r.exits <- o }
func (r *recorder) Lost(err error)                           { r.lost <- err }
func (r *recorder) Say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.String()
}

// one is a part with one rank that is a shell.
func one(script string) launch.Part {
	return launch.Part{Argv: []string{"sh", "-c", script}, First: launch.Identity{World: 1, LocalWorld: 1, Nodes: 1}}
}

// A reader that takes nothing holds up neither the rank nor the news of its end; what does not fit is dropped, and counted.
func TestPausedReader(t *testing.T) {
	a := connected(t, shell(t, `exec "$@"`), "n1")[0]
	r := newRecorder()
	r.hold = make(chan struct{})
	const lines = 600_000
	if err := a.Start(t.Context(), one(fmt.Sprintf(`yes "%s" | head -n %d`, strings.Repeat("x", 49), lines)), r); err != nil {
		t.Fatal(err)
	}
	select {
	case o := <-r.exits:
		if o.Code != 0 {
			t.Errorf("%+v", o)
		}
	case err := <-r.lost:
		t.Fatal(err)
	case <-time.After(60 * time.Second):
		t.Fatal("the rank does not end")
	}
	close(r.hold)
	a.Finish()
	got := strings.Count(r.text(), "\n")
	dropped := 0
	for _, s := range r.said {
		var n int
		if k, _ := fmt.Sscanf(s, "%d lines were dropped", &n); k == 1 {
			dropped += n
		}
	}
	if got == lines || got < 100_000 || got+dropped != lines {
		t.Errorf("%d lines came, %d were dropped, of %d", got, dropped, lines)
	}
}

// The line that rank 0 redraws is seen.
func TestProgressOverTheChannel(t *testing.T) {
	a := connected(t, shell(t, `exec "$@"`), "n1")[0]
	r := newRecorder()
	p := one(`printf '\r50%%'; sleep 0.2; printf '\r100%%\n'`)
	p.Columns = 80
	if err := a.Start(t.Context(), p, r); err != nil {
		t.Fatal(err)
	}
	<-r.exits
	a.Finish()
	if !slices.Contains(r.live, "50%") || r.text() != "100%\n" {
		t.Errorf("live %q, lines %q", r.live, r.text())
	}
}

// A frozen agent is lost to the caller.
func TestFrozenAgent(t *testing.T) {
	to := target(t, "n1", shell(t, `exec "$@"`))
	to.Silence = 2 * time.Second
	a := New(to)
	if err := a.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r := newRecorder()
	if err := a.Start(t.Context(), one("echo pid $$; sleep 100"), r); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); r.text() == "" && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	var pid int
	fmt.Sscanf(r.text(), "pid %d", &pid)
	syscall.Kill(a.PID(), syscall.SIGSTOP) // the agent, which took the place of the script
	select {
	case err := <-r.lost:
		if !strings.Contains(err.Error(), "no sign of life from the agent for 2s") || !strings.Contains(err.Error(), "\nhint: ") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody noticed")
	}
	a.Finish()
	gone(t, pid)
}

// agentByHand starts an agent without a caller.
func agentByHand(t *testing.T) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := skipTo(r); err != nil {
		t.Fatal(err)
	}
	return cmd, in, r
}

// rankOf starts a rank under an agent and returns its process.
func rankOf(t *testing.T, in io.Writer, out *bufio.Reader) int {
	t.Helper()
	b := message(kindHello, hello{Version: Version}).append(nil)
	b = message(kindJob, job{Host: "n1", Part: one("sleep 100"), Grace: 100 * time.Millisecond}).append(b)
	if _, err := in.Write(b); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := readFrame(out)
		if err != nil {
			t.Fatal(err)
		}
		if f.kind == kindStarted {
			var s started
			if err := f.decode(&s); err != nil || len(s.PIDs) != 1 {
				t.Fatalf("%+v %v", s, err)
			}
			return s.PIDs[0]
		}
	}
}

// An agent ends its ranks when the caller is silent, ends the channel, or sends what is not the protocol.
func TestAgentWithoutACaller(t *testing.T) {
	for name, do := range map[string]func(in io.WriteCloser){
		"silence":  func(io.WriteCloser) {}, // 3 s in tests
		"end":      func(in io.WriteCloser) { in.Close() },
		"nonsense": func(in io.WriteCloser) { _, _ = in.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, in, out := agentByHand(t)
			pid := rankOf(t, in, out)
			do(in)
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
			gone(t, pid)
		})
	}
}

// A caller that suspended itself is not silent.
func TestSuspendedCaller(t *testing.T) {
	cmd, in, out := agentByHand(t)
	pid := rankOf(t, in, out)
	if _, err := in.Write(message(kindSignal, signal{"SIGSTOP"}).append(nil)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if p, err := procfs.Read(pid); err == nil && p.State == "T" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the rank is not suspended")
		}
	}
	time.Sleep(4 * time.Second) // longer than the 3 s of silence in tests
	if p, err := procfs.Read(pid); err != nil || p.State != "T" {
		t.Errorf("%+v %v", p, err)
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	gone(t, pid)
}

// After a host was lost, a restart connects again.
func TestRestartAfterALostHost(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	var out transcript.Buffer
	j := crewOf("wait", &out, agents...)
	j.Restarts = 1
	j.Grace = 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out.WaitFor(t, " pid ", 4)
		syscall.Kill(agents[1].PID(), syscall.SIGKILL)
		out.WaitFor(t, " pid ", 9) // one is in the report
		cancel()
	}()
	err := launch.Supervise(ctx, j)
	if launch.ExitCode(err) != launch.ExitStopped || !strings.Contains(out.String(), "restart 1 of 1") {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	a := connected(t, shell(t, `exec "$@"`), "n1")[0]
	for _, c := range []struct {
		change func(*launch.Job)
		code   int
		says   string
	}{
		{func(j *launch.Job) { j.Argv = []string{"/no/such/program"} }, 64, "host n1: launch: start rank 0: fork/exec /no/such/program: no such file"},
		{func(j *launch.Job) { j.Dir = "/no/such/folder" }, 66, "host n1: working directory: stat /no/such/folder: no such file or directory\nhint: "},
	} {
		var out transcript.Buffer
		j := crewOf("who", &out, a)
		c.change(&j)
		if err := launch.Supervise(t.Context(), j); launch.ExitCode(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%v", err)
		}
	}
	var out transcript.Buffer
	if err := launch.Supervise(t.Context(), crewOf("who", &out, a)); err != nil { // the agent is as good as before
		t.Error(err)
	}
}

// A file arrives whole or not at all.
func TestSend(t *testing.T) {
	home := t.TempDir()
	a := connected(t, shell(t, `export XDG_CACHE_HOME=`+home+`; exec "$@"`), "n1")[0]
	path := filepath.Join(t.TempDir(), "prog")
	big := bytes.Repeat([]byte("#!/bin/sh\necho sent $0\nexit\n"), 200_000)
	if err := os.WriteFile(path, big, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := a.Send(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	var out transcript.Buffer
	j := crewOf("", &out, a)
	j.Argv = []string{path}
	if err := launch.Supervise(t.Context(), j); err != nil || !strings.Contains(out.String(), "sent "+home+"/gotrain/bin/") {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// A wrong hash, and a name that leaves the folder.
	l := a.current()
	for _, q := range []Question{
		{What: askStore, Name: "prog", Hash: strings.Repeat("0", 64), Size: 3}, {What: askStore, Name: "../x", Hash: strings.Repeat("0", 64), Size: 3},
	} {
		ans, err := l.ask(t.Context(), q, strings.NewReader("abc"))
		if err != nil || ans.Error == "" {
			t.Errorf("%+v: %+v %v", q, ans, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(home, "gotrain/bin/*/.tmp*"))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// The answer of hosts decides which address of the first one is taken.
func TestMaster(t *testing.T) {
	agents := connected(t, shell(t, `exec "$@"`), "n1", "n2")
	nodes := []Node{agents[0], agents[1]}
	f, err := agents[0].Ask(t.Context(), Question{What: askFacts})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Facts.Addresses) == 0 {
		t.Skip("this machine has no address but loopback")
	}
	addr, port, err := Master(t.Context(), nodes, Meeting{})
	if err != nil || port < 1024 || !slices.ContainsFunc(f.Facts.Addresses, func(a Address) bool { return addrOf(a) == addr }) {
		t.Fatalf("%s %d %v", addr, port, err)
	}
	want := f.Facts.Addresses[0]
	for _, iface := range []string{want.Interface, want.Prefix, addrOf(want), "none," + want.Interface} {
		if addr, _, err := Master(t.Context(), nodes, Meeting{Interface: iface}); err != nil {
			t.Errorf("%s: %s %v", iface, addr, err)
		}
	}
	_, _, err = Master(t.Context(), nodes, Meeting{Interface: "nowhere7"})
	if launch.ExitCode(err) != launch.ExitUsage || !strings.Contains(err.Error(), "host n1 has no interface nowhere7\nhint: it has "+want.Interface) {
		t.Errorf("%v", err)
	}
	here := NewHere("n0")
	defer here.Close()
	if _, err := here.Ask(t.Context(), Question{What: askListen, Port: port}); err != nil {
		t.Fatal(err)
	}
	_, _, err = Master(t.Context(), nodes, Meeting{Port: port})
	if err == nil || !strings.Contains(err.Error(), "address already in use\nhint: another process has port") {
		t.Errorf("%v", err)
	}
}

func TestArgv(t *testing.T) {
	for _, c := range []struct {
		to   Target
		want string
	}{
		{target(t, "n1", nil), "ssh|-o|BatchMode=yes|-o|ConnectTimeout=10|-o|ServerAliveInterval=1|-o|ServerAliveCountMax=4|n1|exec /a/b --agent"},
		{target(t, "n1", []string{"ip", "netns", "exec"}), "ip|netns|exec|n1|/a/b|--agent"},
		{target(t, "n1", []string{"/usr/bin/ssh", "-F", "x"}), "/usr/bin/ssh|-F|x|n1|/a/b --agent"},
	} {
		if got := strings.Join(c.to.argv("/a/b", "--agent"), "|"); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	to := target(t, "fe80::1", nil)
	to.Host.User, to.Port, to.Key = "me", 2222, "key"
	if got := strings.Join(to.argv("sh", "-c", "a 'b'"), "|"); !strings.HasSuffix(got, `|-p|2222|-i|key|me@fe80::1|exec sh -c 'a '\''b'\'''`) {
		t.Error(got)
	}
}
