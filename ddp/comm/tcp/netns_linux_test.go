package tcp

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// network makes n hosts: network namespaces behind a bridge. host r has the address 10.213.0.r+1.
func network(t *testing.T, n int) (hub string, names []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	id := fmt.Sprintf("tcp%d", os.Getpid()%100000)
	ip := func(words ...string) error {
		if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, out)
		}
		return nil
	}
	hub = id + "b"
	if err := ip("netns", "add", hub); err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	t.Cleanup(func() { ip("netns", "del", hub) })
	steps := [][]string{{"-n", hub, "link", "add", "br0", "type", "bridge"}, {"-n", hub, "link", "set", "br0", "up"}}
	for r := range n {
		name := fmt.Sprintf("%sn%d", id, r)
		names = append(names, name)
		t.Cleanup(func() { ip("netns", "del", name) })
		port := fmt.Sprintf("p%d", r)
		steps = append(steps, []string{"netns", "add", name},
			[]string{"-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name},
			[]string{"-n", hub, "link", "set", port, "master", "br0", "up"},
			[]string{"-n", name, "addr", "add", fmt.Sprintf("10.213.0.%d/24", r+1), "dev", "eth0"},
			[]string{"-n", name, "link", "set", "eth0", "up"}, []string{"-n", name, "link", "set", "lo", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			t.Skip("no virtual network here: ", err)
		}
	}
	return hub, names
}

// TestNetwork runs ranks on hosts of a virtual network, and takes one away in every way that a network knows.
func TestNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	hub, hosts := network(t, 3)
	begin := func(role string) []*proc {
		return start(t, role, 3, "10.213.0.1:29533", func(rank int) []string { return []string{"ip", "netns", "exec", hosts[rank]} })
	}
	t.Run("worker", func(t *testing.T) {
		for r, p := range begin("worker") {
			if err := p.wait(t, 90*time.Second); err != nil {
				t.Errorf("rank %d: %v: %s", r, err, p.out)
			}
		}
	})
	in := func(host string, words ...string) error {
		out, err := exec.Command("ip", append([]string{"netns", "exec", host}, words...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v: %w: %s", words, err, out)
		}
		return nil
	}
	for _, way := range []struct {
		name     string
		do, undo func(p *proc) error
	}{
		{"link down", func(*proc) error { return in(hosts[1], "ip", "link", "set", "eth0", "down") },
			func(*proc) error { return in(hosts[1], "ip", "link", "set", "eth0", "up") }},
		{"dropped", func(*proc) error { return in(hub, "ip", "link", "set", "p1", "nomaster") },
			func(*proc) error { return in(hub, "ip", "link", "set", "p1", "master", "br0") }},
		{"stopped", func(p *proc) error { return p.Process.Signal(syscall.SIGSTOP) }, func(p *proc) error { return p.Process.Signal(syscall.SIGCONT) }},
		{"killed", func(p *proc) error { return p.Process.Kill() }, func(*proc) error { return nil }},
	} {
		t.Run(way.name, func(t *testing.T) {
			procs := begin("loop")
			defer func() {
				for _, p := range procs {
					p.Process.Kill()
				}
			}()
			for _, p := range procs {
				p.expect(t, "LOOPING")
			}
			if err := way.do(procs[1]); err != nil {
				t.Fatal(err)
			}
			gone := time.Now()
			for _, r := range []int{0, 2} {
				if err := procs[r].wait(t, 30*time.Second); err == nil {
					t.Errorf("rank %d ends without an error", r)
				}
				t.Logf("rank %d noticed after %v", r, time.Since(gone).Round(time.Millisecond))
				if out := procs[r].out.String(); !strings.Contains(out, "rank 1 is gone") {
					t.Errorf("rank %d does not name rank 1: %s", r, out)
				}
			}
			if took := time.Since(gone); took > 15*time.Second { // 5 on an idle machine
				t.Errorf("took %v", took)
			}
			if err := way.undo(procs[1]); err != nil {
				t.Error(err)
			}
			procs[1].wait(t, 30*time.Second) // it fails too, however late it learns
		})
	}
}
