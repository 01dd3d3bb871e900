package pmix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// fake is a library that answers with codes.
type fake struct {
	values map[string]string
	rc     map[string]int
	block  chan struct{}
	calls  []string
}

func (f *fake) say(name string) int { f.calls = append(f.calls, name); return f.rc[name] }

func (f *fake) init() int                 { return f.say("init") }
func (f *fake) commit() int               { return f.say("commit") }
func (f *fake) finalize() int             { return f.say("finalize") }
func (f *fake) explain(rc int) string     { return fmt.Sprintf("CODE%d", rc) }
func (f *fake) put(key, value string) int { f.values[key] = value; return f.say("put") }
func (f *fake) fence() int {
	if f.block != nil {
		<-f.block
	}
	return f.say("fence")
}
func (f *fake) get(_ uint32, key string) (string, int) { return f.values[key], f.say("get") }

func TestCalls(t *testing.T) {
	f := &fake{values: map[string]string{}}
	c, err := newClient(f)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := errors.Join(c.Put(ctx, "k", "v"), c.Barrier(ctx)); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "k"); err == nil {
		t.Error("the client answers after Close")
	}
	if got := strings.Join(f.calls, " "); got != "init put commit fence get finalize" {
		t.Error(got)
	}
}

func TestCodesBecomeErrors(t *testing.T) {
	for _, name := range []string{"init", "put", "commit", "fence", "get", "finalize"} {
		f := &fake{values: map[string]string{}, rc: map[string]int{name: -25}}
		c, err := newClient(f)
		if err == nil {
			_, e := c.Get(t.Context(), "k")
			err = errors.Join(c.Put(t.Context(), "k", "v"), c.Barrier(t.Context()), e, c.Close())
		}
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "pmix_"+name+": code-25 (-25)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, _ := newClient(&fake{values: map[string]string{}})
	if c.Put(t.Context(), "", "v") == nil || c.Put(t.Context(), strings.Repeat("k", 600), "v") == nil || c.Put(t.Context(), "k", "") == nil {
		t.Error("a key or value that the library cannot carry was stored")
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	f := &fake{values: map[string]string{}, block: make(chan struct{})}
	c, _ := newClient(f)
	why := errors.New("nobody came")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if err := c.Barrier(ctx); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if _, err := c.Get(t.Context(), "k"); !errors.Is(err, why) {
		t.Errorf("a call while another is in the library: %v", err)
	}
	close(f.block)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "libpmix.so.2")
	if err := os.WriteFile(bad, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(dir, "nothing")} {
		if got, err := Find(launch.LookupIn([]string{"GOTRAIN_PMIX=" + path})); err == nil || !strings.Contains(err.Error(), "GOTRAIN_PMIX="+path) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	list := strings.Join(candidates(launch.LookupIn([]string{"OPAL_PREFIX=/opt/x", "PMIX_PREFIX=relative"})), " ")
	if !strings.HasPrefix(list, "/opt/x/lib/libpmix.so.2 ") || !strings.Contains(list, " "+library) || strings.Contains(list, "relative") {
		t.Error(list)
	}
}

// Three processes of a real Open MPI exchange an address.
func TestOpenMPI(t *testing.T) {
	if os.Getenv("GOTRAIN_TEST_PMIX") != "" {
		asRank(t)
		return
	}
	out, err := exec.Command("mpirun", "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Open MPI") {
		t.Skip("Open MPI's mpirun is not installed")
	}
	if _, err := Find(os.LookupEnv); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mpirun", "-np", "3", "--oversubscribe", "--allow-run-as-root", "-x", "GOTRAIN_TEST_PMIX=1", self, "-test.run=^TestOpenMPI$")
	if out, err = cmd.CombinedOutput(); err != nil || strings.Count(string(out), "rank 0 is at 10.0.0.1:41823") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

func asRank(t *testing.T) {
	path, err := Find(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if os.Getenv("PMIX_RANK") == "0" {
		if err := c.Put(ctx, "gotrain-0", "10.0.0.1:41823"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Barrier(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := c.Get(ctx, "gotrain-0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "nobody-put-this"); err == nil {
		t.Error("a value that nobody stored")
	} else {
		fmt.Println("missing:", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("rank 0 is at %s\n", v)
}
