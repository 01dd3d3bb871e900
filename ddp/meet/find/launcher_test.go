package find

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
	"github.com/gotrain/gotrain/ddp/meet/pmix"
)

// launchers are real ones, and how they know where rank 0 is.
var launchers = []struct{ mpirun, version, how, flags, across string }{
	{"mpirun.mpich", "HYDRA", "PMI-1", "-np 3", "-launcher ssh -launcher-exec RSH -hosts 10.77.0.1:2,10.77.0.2:2 -iface veth0 -np 4"},
	{"mpirun", "Open MPI", "PMIx", "-np 3 --oversubscribe --allow-run-as-root -x GOTRAIN_TEST_FIND=1",
		"--allow-run-as-root --mca plm_rsh_agent RSH --mca oob_tcp_if_include 10.77.0.0/24 -np 4 -H 10.77.0.1:2,10.77.0.2:2 -x GOTRAIN_TEST_FIND=1"},
}

// under runs this test in processes that a launcher starts.
func under(t *testing.T, mpirun, version, how string, args []string) string {
	t.Helper()
	if out, err := exec.Command(mpirun, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), version) {
		t.Skip("this launcher is not installed")
	}
	if _, err := pmix.Find(os.LookupEnv); err != nil && how == "PMIx" {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append(args, self, "-test.run=^TestUnderMPIRun$")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_FIND=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// Three processes of a real mpirun meet, once by PMI-1 of MPICH and once by PMIx of Open MPI. No variable is set by hand.
func TestUnderMPIRun(t *testing.T) {
	if os.Getenv("GOTRAIN_TEST_FIND") != "" {
		asRank(t)
		return
	}
	for _, l := range launchers {
		t.Run(l.mpirun, func(t *testing.T) {
			out := under(t, l.mpirun, l.version, l.how, append([]string{l.mpirun}, strings.Fields(l.flags)...))
			if n := strings.Count(out, "3 ranks on 1 machines by "+l.how); n != 3 {
				t.Errorf("%d of 3 ranks\n%s", n, out)
			}
		})
	}
}

// The same with two ranks on each of two hosts, which are network namespaces.
func TestAcrossHosts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	host, rsh := namespaces(t)
	for _, l := range launchers {
		t.Run(l.mpirun, func(t *testing.T) {
			args := strings.Fields("ip netns exec " + host + " " + l.mpirun + " " + strings.Replace(l.across, "RSH", rsh, 1))
			out := under(t, l.mpirun, l.version, l.how, args)
			if n := strings.Count(out, "4 ranks on 2 machines by "+l.how); n != 4 {
				t.Errorf("%d of 4 ranks\n%s", n, out)
			}
		})
	}
}

// namespaces makes two hosts, 10.77.0.1 and 10.77.0.2. It returns the name of the first and a command that stands for ssh.
func namespaces(t *testing.T) (host, rsh string) {
	t.Helper()
	name := fmt.Sprintf("find%d-", os.Getpid()) // of this run: another may be going on
	ip := func(line string) {
		line = strings.ReplaceAll(line, "NS", name)
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
	for i := range 2 {
		ip(fmt.Sprintf("netns add NS%d", i))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", fmt.Sprint(name, i)).Run() })
	}
	for _, line := range []string{
		"link add veth0 netns NS0 type veth peer name veth0 netns NS1",
		"-n NS0 addr add 10.77.0.1/24 dev veth0", "-n NS1 addr add 10.77.0.2/24 dev veth0",
		"-n NS0 link set veth0 up", "-n NS1 link set veth0 up", "-n NS0 link set lo up", "-n NS1 link set lo up",
	} {
		ip(line)
	}
	rsh = filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nn=" + name + "$((${1##*.}-1)); shift\nexec ip netns exec $n sh -c \"$*\"\n"
	if err := os.WriteFile(rsh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return name + "0", rsh
}

// asRank meets the other ranks.
func asRank(t *testing.T) {
	id, err := launch.Self()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Where(id, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := os.Readlink("/proc/self/ns/net") // namespaces of one kernel share memory, and play several machines here
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := meet.Join(ctx, meet.Config{Rank: id.Rank, World: id.World, LocalRank: id.LocalRank, LocalWorld: id.LocalWorld, Node: id.NodeRank,
		Nodes: id.Nodes, Job: id.JobID, Generation: id.Restart, Place: p, Version: "test", Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%d ranks on %d machines by %s\n", len(g.Roster().Members), g.Roster().Nodes(), p.How)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

// broken is a launcher that fails somewhere.
type broken struct {
	at    string
	value string
}

func (b broken) fail(at string) error {
	if at == b.at {
		return fmt.Errorf("no %s", at)
	}
	return nil
}
func (b broken) Put(context.Context, string, string) error   { return b.fail("put") }
func (b broken) Barrier(context.Context) error               { return b.fail("barrier") }
func (b broken) Get(context.Context, string) (string, error) { return b.value, b.fail("get") }
func (b broken) Close() error                                { return b.fail("close") }

func TestLauncherThatFails(t *testing.T) {
	for _, at := range []string{"open", "put", "barrier", "get", "close"} {
		l := &launcher{how: "X", open: func() (table, error) { b := broken{at: at}; return b, b.fail("open") }}
		err := l.publish(t.Context(), "h:1", nil)
		if err == nil || !strings.Contains(err.Error(), "no "+at) || launch.ExitCode(err) != launch.ExitUnavailable {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, v := range []string{"h:1", "/t", "nonsense/t", "h:1,x/t"} {
		l := &launcher{how: "X", open: func() (table, error) { return broken{value: v}, nil }}
		if addr, _, err := l.lookup(t.Context()); err == nil {
			t.Errorf("%q was taken for %q", v, addr)
		}
	}
}
