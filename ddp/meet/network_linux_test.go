package meet

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// lan is a network of hosts behind a bridge, each a network namespace. Host i has the addresses 10.9.0.i+1 and fd09::i+1.
type lan struct {
	t    *testing.T
	name string
	n    int
}

// newLAN makes one. The test is skipped where that is not possible.
func newLAN(t *testing.T, name string, n int) *lan {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "bridge"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("network namespaces need", tool)
		}
	}
	l := &lan{t, fmt.Sprintf("meet%d%s", os.Getpid(), name), n}
	if out, err := exec.Command("ip", "netns", "add", l.name+"br").CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		for i := range n {
			exec.Command("ip", "netns", "del", l.host(i)).Run()
		}
		exec.Command("ip", "netns", "del", l.name+"br").Run()
	})
	br := "-n " + l.name + "br"
	l.ip(br, "link add br0 type bridge")
	l.ip(br, "link set br0 up")
	for i := range n {
		h := "-n " + l.host(i)
		l.ip("netns add", l.host(i))
		l.ip(br, fmt.Sprintf("link add p%d type veth peer name eth0 netns %s", i, l.host(i)))
		l.ip(br, fmt.Sprintf("link set p%d master br0 up", i))
		l.ip(h, fmt.Sprintf("addr add 10.9.0.%d/24 dev eth0", i+1))
		l.ip(h, fmt.Sprintf("addr add fd09::%d/64 dev eth0 nodad", i+1))
		l.ip(h, "link set eth0 up")
		l.ip(h, "link set lo up")
	}
	return l
}

func (l *lan) host(i int) string { return fmt.Sprint(l.name, "h", i) }

func (l *lan) ip(words ...string) {
	l.t.Helper()
	l.run("ip " + strings.Join(words, " "))
}

// on runs a command on a host.
func (l *lan) on(i int, command string) {
	l.t.Helper()
	l.run("ip netns exec " + l.host(i) + " " + command)
}

func (l *lan) run(command string) {
	l.t.Helper()
	argv := strings.Fields(command)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// start starts one rank on each host.
func (l *lan) start(addr string) (list []*member) {
	for r := range l.n {
		list = append(list, start(l.t, r, l.n, addr, 500, "ip", "netns", "exec", l.host(r)))
	}
	return list
}

// A host whose link goes down, or whose packets a firewall drops, is given up within five seconds, by name, on all other hosts, though nothing closes its
// connections. The cut-off side gives up as well.
func TestLostHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addr string
		cut  func(l *lan)
		rank int
	}{
		"link": {"10.9.0.1:29500", func(l *lan) { l.ip("-n", l.name+"br", "link set p2 down") }, 2},
		"zero": {"10.9.0.1:29500", func(l *lan) { l.ip("-n", l.name+"br", "link set p0 down") }, 0},
		"drop": {"[fd09::1]:29500", func(l *lan) {
			l.run("ip netns exec " + l.name + "br bridge link set dev p2 state 0") // forwards nothing, and nobody sees it
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, name, 3)
			list := l.start(c.addr)
			for r, m := range list {
				want := fmt.Sprintf("up 10.9.0.%d:", r+1)
				if c.addr[0] == '[' {
					want = fmt.Sprintf("up [fd09::%d]:", r+1)
				}
				if line := m.expect("up "); !strings.HasPrefix(line, want) || r > 0 && !strings.HasSuffix(line, " (eth0, by the route to rank 0)") {
					t.Errorf("rank %d listens at %s, want %s", r, line, want)
				}
			}
			c.cut(l)
			noticed(t, list, c.rank, " for 4s", 20*time.Second)
			list[c.rank].expect("down ")
		})
	}
}

// A firewall that lets connections pass in one direction only is described on all ranks.
func TestOneWayFirewall(t *testing.T) {
	t.Parallel()
	l := newLAN(t, "fw", 3)
	l.on(2, "ip rule add to 10.9.0.2 ipproto tcp dport 30000-30010 unreachable") // answers have these ports as their source
	for _, m := range l.start("10.9.0.1:29500") {
		line := m.expect("failed: ")
		for _, want := range []string{"rank 2 (h2, 10.9.0.3) cannot reach rank 1 (h1, 10.9.0.2:", "): network is unreachable; 1 → 2 works | hint: a firewall"} {
			if !strings.Contains(line, want) {
				t.Errorf("rank %d: %s\nwant %s", m.rank, line, want)
			}
		}
	}
}

// A name of rank 0's host that stands for a loopback address there, as in Debian's /etc/hosts, does not keep other hosts out.
func TestOwnNameIsLoopback(t *testing.T) {
	t.Parallel()
	l := newLAN(t, "name", 2)
	list := []*member{
		start(t, 0, 2, "localhost.:29511", 500, "ip", "netns", "exec", l.host(0)), // any name but localhost itself
		start(t, 1, 2, "10.9.0.1:29511", 500, "ip", "netns", "exec", l.host(1)),
	}
	for r, m := range list {
		if line := m.expect("up "); !strings.HasPrefix(line, fmt.Sprintf("up 10.9.0.%d:", r+1)) {
			t.Error(line)
		}
		m.in.Close()
	}
	for _, m := range list {
		m.expect("left")
	}
}
