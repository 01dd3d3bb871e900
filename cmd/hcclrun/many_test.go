package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/procfs"
	"github.com/gotrain/gotrain/internal/transcript"
)

// call is a running hcclrun.
type call struct {
	cmd *exec.Cmd
	out transcript.Buffer
}

// start runs hcclrun as a process of its own.
func start(t *testing.T, env []string, args ...string) *call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	c := &call{cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	c.cmd.Env = append(append(os.Environ(), "GOTRAIN_TEST_HCCLRUN=1"), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.WaitDelay = 10 * time.Second
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// code waits for the end.
func (c *call) code() int {
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// tree is all processes below some, and these, with their start times, because numbers are reused.
func tree(roots ...int) map[int]string {
	all := map[int]string{}
	for len(roots) > 0 {
		pid := roots[0]
		roots = roots[1:]
		p, err := procfs.Read(pid)
		if _, seen := all[pid]; seen || err != nil {
			continue
		}
		all[pid] = p.Start
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, l := range lists {
			b, _ := os.ReadFile(l)
			for f := range strings.FieldsSeq(string(b)) {
				var child int
				fmt.Sscan(f, &child)
				roots = append(roots, child)
			}
		}
	}
	return all
}

// gone waits until none of the processes runs.
func gone(t *testing.T, all map[int]string, c *call) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for pid, started := range all {
			if p, err := procfs.Read(pid); err == nil && p.Start == started && !p.Ended() {
				left = pid
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", left))
			t.Fatalf("process %d still runs: %q\n%s", left, strings.ReplaceAll(string(line), "\x00", " "), c.out.String())
		}
	}
}

// reach is a command for --rsh that runs what it gets behind the host, as a child: like ssh, but on this host.
func reach(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reach")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nhost=$1; shift\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const asChild = `"$@"; exit $?`

// deaf ignores stop requests, and has a child.
const deaf = `trap "" TERM INT; sleep 100 & echo ready; wait; sleep 100`

// whose finds the process of a tree whose command line has a text and whose parent has another.
func whose(t *testing.T, all map[int]string, has, parentHas string) int {
	t.Helper()
	text := func(pid int) string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.ReplaceAll(string(b), "\x00", " ")
	}
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if p, err := procfs.Read(pid); err == nil && strings.Contains(text(pid), has) && strings.Contains(text(p.Parent), parentHas) {
			return pid
		}
	}
	for pid := range all {
		t.Log(pid, text(pid))
	}
	t.Fatalf("no process %q below %q", has, parentHas)
	return 0
}

// Whatever process of a job is killed, the job ends and no other is left.
func TestKilledInTurn(t *testing.T) {
	rsh := reach(t, asChild)
	for _, c := range []struct {
		name           string
		has, parentHas string
		code           int
		says           string
	}{
		{"hcclrun", "--hcclrun--", "", -1, ""},
		{"ssh", "reach n2", "", 69, "host n2 was lost first"},
		{"agent", "--agent", "reach n2", 69, "host n2 was lost first"},
		{"rank", deaf[:20], "--agent", 137, "failed first: killed by SIGKILL (host n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, nil, "--rsh", rsh, "--grace", "300ms", "-H", "n1:2,n2:2", "sh", "-c", deaf)
			h.out.WaitFor(t, "ready", 4)
			all := tree(h.cmd.Process.Pid)
			victim := h.cmd.Process.Pid
			if c.name != "hcclrun" {
				victim = whose(t, all, c.has, c.parentHas)
			}
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := h.code(); code != c.code || !strings.Contains(h.out.String(), c.says) {
				t.Errorf("code %d, want %d with %q\n%s", code, c.code, c.says, h.out.String())
			}
			gone(t, all, h)
		})
	}
}

// Without its guard, a job ends in order.
func TestKilledGuards(t *testing.T) {
	h := start(t, nil, "--rsh", reach(t, asChild), "--grace", "300ms", "-H", "n1:1,n2:1", "sh", "-c", deaf)
	h.out.WaitFor(t, "ready", 2)
	all := tree(h.cmd.Process.Pid)
	for pid := range all {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(b, []byte("read -r g")) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	syscall.Kill(h.cmd.Process.Pid, syscall.SIGTERM)
	if code := h.code(); code != 124 {
		t.Errorf("code %d\n%s", code, h.out.String())
	}
	gone(t, all, h)
}

// Requests of the user reach all hosts, and each is stronger than the one before.
func TestSignalsAcrossHosts(t *testing.T) {
	const polite = `trap 'echo got; [ $n ] && exit 75; n=1' TERM INT; echo ready; while :; do sleep 0.01; done`
	for _, c := range []struct {
		name string
		prog string
		sigs []syscall.Signal
		wait []string // before the signal
		code int
		says string
	}{
		{"first", `trap 'exit 75' TERM; echo ready; while :; do sleep 0.01; done`, []syscall.Signal{syscall.SIGTERM}, []string{"ready"}, 75, "stopped on request by SIGTERM"},
		{"second", polite, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, []string{"ready", "got"}, 75, "second stop request (SIGINT)"},
		{"third", `trap 'echo got' INT; echo ready; while :; do sleep 0.01; done`, []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGINT},
			[]string{"ready", "got", "second stop"}, 130, "third stop request (SIGINT): killing the ranks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, nil, "--rsh", reach(t, asChild), "-H", "n1,n2", "sh", "-c", c.prog)
			for i, sig := range c.sigs {
				n := 2
				if i > 1 {
					n = 1
				}
				h.out.WaitFor(t, c.wait[i], n)
				if i > 0 {
					time.Sleep(1100 * time.Millisecond) // requests within a second are one
				}
				syscall.Kill(h.cmd.Process.Pid, sig)
			}
			all := tree(h.cmd.Process.Pid)
			if code := h.code(); code != c.code || !strings.Contains(h.out.String(), c.says) {
				t.Errorf("code %d, want %d with %q\n%s", code, c.code, c.says, h.out.String())
			}
			gone(t, all, h)
		})
	}
}

// Slurm warns the steps of a job by USR1, and so agents that srun has started: they pass it on to the ranks, and live.
func TestWarningOfAgents(t *testing.T) {
	h := start(t, nil, "--rsh", reach(t, asChild), "-H", "n1,n2", "sh", "-c", `trap 'exit 75' USR1; echo ready; while :; do sleep 0.01; done`)
	h.out.WaitFor(t, "ready", 2)
	all, agents := tree(h.cmd.Process.Pid), 0
	for pid := range all {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasSuffix(b, []byte("--agent\x00")) && !bytes.HasPrefix(b, []byte("/bin/sh")) {
			syscall.Kill(pid, syscall.SIGUSR1)
			agents++
		}
	}
	if code := h.code(); code != 75 || agents < 2 || strings.Contains(h.out.String(), "lost") {
		t.Errorf("%d agents, code %d\n%s", agents, code, h.out.String())
	}
	gone(t, all, h)
}

// Ctrl-Z suspends the ranks on all hosts, and fg resumes them.
func TestSuspendAcrossHosts(t *testing.T) {
	// A shell that is starting a program cannot be seen as stopped (it waits for the child, in state D), so it starts none after "ready".
	h := start(t, nil, "--rsh", reach(t, asChild), "-H", "n1,n2", "sh", "-c", `trap 'kill $!; exit 75' TERM; sleep 100 & echo ready $$; while :; do wait; done`)
	h.out.WaitFor(t, "ready", 2)
	var pids []int
	for line := range strings.Lines(h.out.String()) {
		var pid int
		if _, rest, ok := strings.Cut(line, "ready "); ok {
			fmt.Sscan(rest, &pid)
			pids = append(pids, pid)
		}
	}
	await := func(stopped bool) {
		t.Helper()
		for _, pid := range append(pids, h.cmd.Process.Pid) {
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
				if p, err := procfs.Read(pid); err == nil && (p.State == "T") == stopped {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("process %d: stopped is not %v", pid, stopped)
				}
			}
		}
	}
	syscall.Kill(h.cmd.Process.Pid, syscall.SIGTSTP)
	await(true)
	syscall.Kill(h.cmd.Process.Pid, syscall.SIGCONT)
	await(false)
	syscall.Kill(h.cmd.Process.Pid, syscall.SIGTERM)
	if code := h.code(); code != 75 {
		t.Errorf("code %d\n%s", code, h.out.String())
	}
}

func TestHostsThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct {
		name string
		rsh  string
		args []string
		code int
		says string
	}{
		{"ssh hangs", `sleep 100`, []string{"--start-timeout", "500ms"}, 69, "host n2: no answer from the agent: nothing within 500ms (--start-timeout)"},
		{"refused", `[ $host = n1 ] && exec "$@"; echo "$host: Permission denied (publickey)." >&2; exit 255`, nil, 69,
			"host n2: reach ended with exit status 255: n2: Permission denied (publickey).\nhint: ssh must work without a password"},
		{"refused without a word", `[ $host = n1 ] && exec "$@"; exit 255`, nil, 69,
			"host n2: reach ended with exit status 255\nhint: this is what ssh, and most commands like it, return when"},
		{"no agent there", `[ $host = n1 ] && exec "$@"; echo "sh: 1: $1: not found" >&2; exit 127`, nil, 69, "hint: hcclrun must be at the same path on every host"},
		{"another program answers", `[ $host = n1 ] && exec "$@"; echo "Last login: today"; cat >/dev/null`, []string{"--start-timeout", "700ms"}, 69,
			"host n2: no answer"},
		{"an older agent", `[ $host = n1 ] && exec "$@"; printf '\n\000gotrain-agent\001\n\015\000\000\000\001{"Version":9}'; sleep 5`, nil, 69,
			"the agent speaks protocol 9, and this program 1: the programs differ\nhint: --copy sends this one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, nil, append([]string{"--rsh", reach(t, c.rsh), "-H", "n1,n2"}, append(c.args, "sh", "-c", "echo started")...)...)
			all := tree(h.cmd.Process.Pid)
			if code := h.code(); code != c.code || !strings.Contains(h.out.String(), c.says) || strings.Contains(h.out.String(), "started") {
				t.Errorf("code %d, want %d with %q\n%s", code, c.code, c.says, h.out.String())
			}
			gone(t, all, h)
		})
	}
}

// A program of gotrain's must be the same everywhere; --copy sends it, and is needed once.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	// On the other "host", the program at that path is another one, hcclrun is missing unless it was sent, and home is elsewhere.
	home := filepath.Join(dir, "home")
	rsh := reach(t, `export HOME=`+home+`; unset XDG_CACHE_HOME; mkdir -p $HOME
case "$1" in `+os.Args[0]+`) echo "$1: not found" >&2; exit 127;; esac
exec "$@"`)
	h := start(t, nil, "--rsh", rsh, "-H", "n2", program, "-test.run=NoTest")
	if code := h.code(); code != 69 || !strings.Contains(h.out.String(), "send it with --copy") {
		t.Fatalf("code %d\n%s", code, h.out.String())
	}
	for range 2 {
		h = start(t, nil, "--rsh", rsh, "--copy", "-H", "n2", program, "-test.run=NoTest", "-test.v")
		if code := h.code(); code != 0 || !strings.Contains(h.out.String(), "PASS") {
			t.Fatalf("code %d\n%s", code, h.out.String())
		}
	}
	found, _ := filepath.Glob(filepath.Join(home, ".cache/gotrain/bin/*/*"))
	if len(found) != 2 || filepath.Base(found[0]) != "hcclrun" && filepath.Base(found[1]) != "hcclrun" {
		t.Errorf("the cache has %v", found)
	}
}

// The output of each rank is in its files, without prefixes.
func TestOutputFiles(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "logs")
	h := start(t, nil, "--rsh", reach(t, asChild), "--output", logs, "--tag-output", "-H", "n1,n2:2", "sh", "-c", "echo out $GOTRAIN_RANK; echo err >&2")
	if code := h.code(); code != 0 || !strings.Contains(h.out.String(), "[n1 0] out 0\n") || !strings.Contains(h.out.String(), "[n2 2] err\n") {
		t.Fatalf("code %d\n%s", code, h.out.String())
	}
	for rank := range 3 {
		for name, want := range map[string]string{"stdout": fmt.Sprintf("out %d\n", rank), "stderr": "err\n"} {
			if got, err := os.ReadFile(filepath.Join(logs, fmt.Sprintf("rank.%d", rank), name)); string(got) != want {
				t.Errorf("rank %d %s: %q %v", rank, name, got, err)
			}
		}
	}
}

// A reader that exits costs lines, not the job.
func TestClosedPipeAcrossHosts(t *testing.T) {
	h := exec.CommandContext(t.Context(), os.Args[0], "--rsh", reach(t, asChild), "-H", "n1,n2", "sh", "-c",
		`trap "exit 75" TERM; echo ready; echo ready >&2; while :; do echo more; sleep 0.005; done`)
	h.Env = append(os.Environ(), "GOTRAIN_TEST_HCCLRUN=1")
	var errs transcript.Buffer
	h.Stderr = &errs
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	errs.WaitFor(t, "ready", 2)
	out.Close()
	errs.WaitFor(t, "broken pipe; the ranks continue", 1)
	syscall.Kill(h.Process.Pid, syscall.SIGTERM)
	_ = h.Wait()
	if code := h.ProcessState.ExitCode(); code != 75 {
		t.Errorf("code %d\n%s", code, errs.String())
	}
}

// sshd starts a server on this host, and returns the folder of a program "ssh" that knows it under the names n1, n2, …
func sshd(t *testing.T) (path string, pid int) {
	t.Helper()
	server, err := exec.LookPath("sshd")
	if err != nil {
		server = "/usr/sbin/sshd"
	}
	client, err2 := exec.LookPath("ssh")
	if _, err := os.Stat(server); err != nil || err2 != nil {
		t.Skip("no sshd and ssh on this machine (apt-get install openssh-server)")
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "id"} {
		if b, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Skipf("ssh-keygen: %v %s", err, b)
		}
	}
	if os.Getuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // where it confines itself
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("sshd.conf", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey DIR/host\nAuthorizedKeysFile DIR/id.pub\nPidFile none\nStrictModes no\nUsePAM no\n"+
		"PermitRootLogin prohibit-password\n", port), 0o600)
	write("config", fmt.Sprintf("Host n*\nHostName 127.0.0.1\nPort %d\nIdentityFile DIR/id\nIdentitiesOnly yes\nStrictHostKeyChecking no\n"+
		"UserKnownHostsFile /dev/null\nLogLevel ERROR\n", port), 0o600)
	write("ssh", "#!/bin/sh\nexec "+client+" -F DIR/config \"$@\"\n", 0o755)
	cmd := exec.Command(server, "-D", "-f", filepath.Join(dir, "sshd.conf"), "-E", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	path = dir + ":" + os.Getenv("PATH")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Skipf("sshd does not start: %s", b)
		}
	}
	if b, err := exec.Command(filepath.Join(dir, "ssh"), "-o", "BatchMode=yes", "n1", "true").CombinedOutput(); err != nil {
		t.Skipf("ssh to this host does not work: %v %s", err, b)
	}
	return path, cmd.Process.Pid
}

func TestOverSSH(t *testing.T) {
	path, server := sshd(t)
	env := []string{"PATH=" + path}
	h := start(t, env, "-H", "n1:2,n2:2", "--check")
	if code := h.code(); code != 0 || !strings.Contains(h.out.String(), "2 hosts are ready") {
		t.Fatalf("code %d\n%s", code, h.out.String())
	}
	// This host is part of the job, and needs no ssh. The word with blanks and quotes arrives as it is.
	said := filepath.Join(t.TempDir(), "said") // by rank 0, which the failure of rank 2 ends
	h = start(t, env, "-H", "localhost,n2:2", "-x", `WORDS=it's "two words"`, "sh", "-c",
		`echo "rank $GOTRAIN_RANK/$GOTRAIN_WORLD_SIZE on $GOTRAIN_NODE_RANK: $WORDS, ${#GOTRAIN_JOB_TOKEN}"; [ $GOTRAIN_RANK != 0 ] || : >'`+said+`'
		[ $GOTRAIN_RANK = 2 ] || exec sleep 60
		until [ -e '`+said+`' ]; do sleep 0.02; done; exit 76`)
	code := h.code()
	for _, want := range []string{`rank 0/3 on 0: it's "two words", 64`, `[n2 2] rank 2/3 on 1: it's "two words", 64`,
		"rank 2 failed first: exit code 76 (numerics) (host n2, "} {
		if code != 76 || !strings.Contains(h.out.String(), want) {
			t.Errorf("code %d, no %q in\n%s", code, want, h.out.String())
		}
	}
	for _, victim := range []string{"hcclrun", "ssh", "sshd"} {
		h = start(t, env, "--grace", "300ms", "-H", "n1,n2,localhost", "sh", "-c", deaf)
		h.out.WaitFor(t, "ready", 3)
		all := tree(h.cmd.Process.Pid, server)
		delete(all, server)
		pid := h.cmd.Process.Pid
		switch victim {
		case "ssh":
			pid = whose(t, all, " n2 exec ", "")
		case "sshd":
			agent := whose(t, all, agentFlag, "sshd")
			p, _ := procfs.Read(agent)
			pid = p.Parent
		}
		syscall.Kill(pid, syscall.SIGKILL)
		if code := h.code(); code != 69 && victim != "hcclrun" || victim != "hcclrun" && !strings.Contains(h.out.String(), " was lost first") {
			t.Errorf("%s: code %d\n%s", victim, code, h.out.String())
		}
		gone(t, all, h)
	}
}

// Two network namespaces as hosts.
func TestNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	names := []string{fmt.Sprintf("hr%d-0", os.Getpid()%10000), fmt.Sprintf("hr%d-1", os.Getpid()%10000)}
	ip := func(args ...string) {
		if b, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v %s", args, err, b)
		}
	}
	for _, n := range names {
		ip("netns", "add", n)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n).Run() })
		ip("-n", n, "link", "set", "lo", "up")
	}
	ip("-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", names[1])
	for i, n := range names {
		ip("-n", n, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", fmt.Sprintf("v%d", i))
		ip("-n", n, "link", "set", fmt.Sprintf("v%d", i), "up")
	}
	list := names[0] + ":2," + names[1] + ":2"
	h := start(t, nil, "--rsh", "ip netns exec", "-H", list, "--check")
	if code := h.code(); code != 0 || !strings.Contains(h.out.String(), "10.77.0.2") {
		t.Fatalf("code %d\n%s", code, h.out.String())
	}
	h = start(t, nil, "--rsh", "ip netns exec", "-H", list, "sh", "-c", "echo $GOTRAIN_RANK meets at $GOTRAIN_MASTER_ADDR:$GOTRAIN_MASTER_PORT")
	if code := h.code(); code != 0 || strings.Count(h.out.String(), "meets at 10.77.0.1:2") != 4 {
		t.Fatalf("code %d\n%s", code, h.out.String())
	}
	// Without a way between them, the pair is named.
	ip("-n", names[1], "link", "set", "v1", "down")
	h = start(t, nil, "--rsh", "ip netns exec", "-H", list, "true")
	if code := h.code(); code != 69 || !strings.Contains(h.out.String(), names[1]+" cannot reach "+names[0]+" (10.77.0.1:") {
		t.Errorf("code %d\n%s", code, h.out.String())
	}
}
