package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// server is Hydra's side of the protocol, for n ranks.
type server struct {
	mu      sync.Mutex
	n       int
	staged  map[string]string
	table   map[string]string
	waiting []net.Conn
	left    int
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		m := fields(in.Text())
		s.mu.Lock()
		switch m["cmd"] {
		case "init":
			fmt.Fprintf(c, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n")
		case "get_my_kvsname":
			fmt.Fprintf(c, "cmd=my_kvsname kvsname=kvs_1_0\n")
		case "put":
			s.staged[m["key"]] = m["value"]
			fmt.Fprintf(c, "cmd=put_result rc=0 msg=success\n")
		case "barrier_in":
			if s.waiting = append(s.waiting, c); len(s.waiting) == s.n {
				s.table = s.staged
				for _, w := range s.waiting {
					fmt.Fprintf(w, "cmd=barrier_out\n")
				}
			}
		case "get":
			if v, ok := s.table[m["key"]]; ok && m["kvsname"] == "kvs_1_0" {
				fmt.Fprintf(c, "cmd=get_result rc=0 msg=success value=%s\n", v)
			} else {
				fmt.Fprintf(c, "cmd=get_result rc=-1 msg=key_%s_not_found value=unknown\n", m["key"])
			}
		case "finalize":
			s.left++
			fmt.Fprintf(c, "cmd=finalize_ack\n")
		}
		s.mu.Unlock()
	}
}

func TestExchange(t *testing.T) {
	const n = 3
	s := &server{n: n, staged: map[string]string{}}
	got := make([]string, n)
	var wg sync.WaitGroup
	for rank := range n {
		mine, theirs := net.Pipe()
		go s.serve(theirs)
		wg.Go(func() {
			c := New(mine)
			ctx := t.Context()
			if rank == 0 {
				if err := c.Put(ctx, "gotrain-0", "[fe80::1]:41823/secret=1"); err != nil {
					t.Error(err)
				}
			}
			if err := c.Barrier(ctx); err != nil {
				t.Error(err)
			}
			var err error
			if got[rank], err = c.Get(ctx, "gotrain-0"); err != nil {
				t.Error(err)
			}
			if _, err := c.Get(ctx, "other"); err == nil || !strings.Contains(err.Error(), "key_other_not_found") {
				t.Errorf("a key that nobody stored: %v", err)
			}
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Error(err)
			}
			if _, err := c.Get(ctx, "gotrain-0"); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
	wg.Wait()
	for rank, v := range got {
		if v != "[fe80::1]:41823/secret=1" {
			t.Errorf("rank %d got %q", rank, v)
		}
	}
	if s.left != n {
		t.Errorf("%d ranks said good-bye", s.left)
	}
}

// Whatever the launcher answers, an error says what it was, and the client says the same from then on.
func TestBadLaunchers(t *testing.T) {
	for _, c := range []struct{ answers, want string }{
		{"", "no answer to init: EOF"},
		{"cmd=response_to_init rc=-1 msg=version\n", "the launcher refused: version (rc=-1)"},
		{"cmd=response_to_init rc=0\ncmd=my_kvsname\n", "does not name the table"},
		{"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\n", `answered "cmd=barrier_out\n" instead of get_result`},
		{"cmd=response_to_init rc=0\nnonsense\n", `answered "nonsense\n" instead of my_kvsname`},
		{"\xff\x00\n", "instead of response_to_init"},
		{strings.Repeat("x", maxLine+5000) + "\n", "a line without an end"},
	} {
		mine, theirs := net.Pipe()
		go func() {
			in := bufio.NewReader(theirs)
			for answer := range strings.Lines(c.answers) {
				in.ReadString('\n')
				theirs.Write([]byte(answer))
			}
			if c.answers == "" {
				in.ReadString('\n')
			}
			theirs.Close()
		}()
		cl := New(mine)
		_, err := cl.Get(t.Context(), "k")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.answers, err, c.want)
		}
		cl.Close()
		theirs.Close()
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	mine, theirs := net.Pipe()
	defer theirs.Close()
	s := &server{n: 2, staged: map[string]string{}}
	go s.serve(theirs)
	ctx, cancel := context.WithCancelCause(t.Context())
	c := New(mine)
	defer c.Close()
	if err := c.Put(ctx, "a", "b"); err != nil {
		t.Fatal(err)
	}
	why := errors.New("nobody came")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if err := c.Barrier(ctx); !errors.Is(err, why) {
		t.Errorf("a barrier that nobody else enters: %v", err)
	}
	if _, err := c.Get(t.Context(), "a"); !errors.Is(err, why) {
		t.Errorf("the next call: %v", err)
	}
}

func TestPutRefusesWhatTheProtocolCannotCarry(t *testing.T) {
	for _, kv := range [][2]string{{"a b", "c"}, {"a", "b c"}, {"a", "b\ncmd=finalize"}, {"", "b"}, {"a", ""}, {"a=b", "c"}, {"a", strings.Repeat("x", 2000)}} {
		if err := New(nil).Put(t.Context(), kv[0], kv[1]); err == nil {
			t.Errorf("%.20q was stored", kv)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, v := range []string{"", "x", "0", "-1", "2", "9999"} {
		if c, err := Open(launch.LookupIn([]string{"PMI_FD=" + v})); err == nil {
			t.Errorf("PMI_FD=%q: %v", v, c)
		}
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := net.FileConn(os.NewFile(uintptr(fds[1]), "launcher"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{n: 1, staged: map[string]string{}}
	go s.serve(theirs)
	c, err := Open(launch.LookupIn([]string{"PMI_FD=" + strconv.Itoa(fds[0])}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Put(t.Context(), "k", "v"), c.Barrier(t.Context())); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Three processes of a real Hydra exchange an address.
func TestHydra(t *testing.T) {
	if os.Getenv("GOTRAIN_TEST_PMI") != "" {
		asRank(t)
		return
	}
	mpirun, err := exec.LookPath("mpirun.mpich")
	if err != nil {
		if mpirun, err = exec.LookPath("mpiexec.hydra"); err != nil {
			t.Skip("MPICH's mpirun is not installed")
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, mpirun, "-np", "3", self, "-test.run=^TestHydra$", "-test.v")
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_PMI=1")
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "rank 0 is at 10.0.0.1:41823"); err != nil || n != 3 {
		t.Errorf("%v, %d of 3 ranks know the address\n%s", err, n, out)
	}
}

func asRank(t *testing.T) {
	c, err := Open(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if os.Getenv("PMI_RANK") == "0" {
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
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("rank 0 is at %s\n", v)
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=get_result rc=0 value=v\n"))
	f.Add([]byte("cmd=response_to_init\ncmd=my_kvsname kvsname= k\ncmd=get_result rc=00 value=a=b c\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mine, theirs := net.Pipe()
		go func() {
			in := bufio.NewReader(theirs)
			for answer := range strings.Lines(string(b)) {
				if _, err := in.ReadString('\n'); err != nil {
					break
				}
				theirs.Write([]byte(answer))
			}
			theirs.Close()
		}()
		c := New(mine)
		if v, err := c.Get(t.Context(), "k"); err == nil && strings.ContainsAny(v, " \n") {
			t.Fatalf("got %q", v)
		}
		c.conn.Close()
		c.conn = nil
		theirs.Close()
	})
}
