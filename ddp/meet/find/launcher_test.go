package find

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet/pmix"
)

// Three processes of a real mpirun find rank 0, once by PMI-1 of MPICH and once by PMIx of Open MPI. No variable is set by hand.
func TestUnderMPIRun(t *testing.T) {
	if os.Getenv("GOTRAIN_TEST_FIND") != "" {
		asRank(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mpirun, c := range map[string]struct{ version, how, flags string }{
		"mpirun.mpich": {"HYDRA", "PMI-1", ""},
		"mpirun":       {"Open MPI", "PMIx", "--oversubscribe --allow-run-as-root -x GOTRAIN_TEST_FIND=1"},
	} {
		t.Run(mpirun, func(t *testing.T) {
			if out, err := exec.Command(mpirun, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), c.version) {
				t.Skip("this launcher is not installed")
			}
			if _, err := pmix.Find(os.LookupEnv); err != nil && c.how == "PMIx" {
				t.Skip(err)
			}
			cmd := exec.Command(mpirun, append(append([]string{"-np", "3"}, strings.Fields(c.flags)...), self, "-test.run=^TestUnderMPIRun$")...)
			cmd.Env = append(os.Environ(), "GOTRAIN_TEST_FIND=1")
			out, err := cmd.CombinedOutput()
			if n := strings.Count(string(out), "rank 0 is at 10.0.0.1:41823 with a token of 52 characters by "+c.how); err != nil || n != 3 {
				t.Errorf("%v: %d of 3 ranks\n%s", err, n, out)
			}
		})
	}
}

func asRank(t *testing.T) {
	id, err := launch.Self()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Where(id, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	addr, token := "10.0.0.1:41823", p.Token
	if id.Rank == 0 {
		err = p.Publish(ctx, addr, token)
	} else {
		addr, token, err = p.Lookup(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("rank 0 is at %s with a token of %d characters by %s\n", addr, len(token), p.How)
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
