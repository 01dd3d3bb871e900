package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// inProcess is a place for ranks of one test: rank 0 publishes its address in memory.
func inProcess() Place {
	ready := make(chan struct{})
	var at string
	var secret []byte
	return Place{How: "test",
		Publish: func(_ context.Context, addr string, token []byte) error {
			at, secret = addr, token
			close(ready)
			return nil
		},
		Lookup: func(ctx context.Context) (string, []byte, error) {
			select {
			case <-ready:
				return at, secret, nil
			case <-ctx.Done():
				return "", nil, context.Cause(ctx)
			}
		}}
}

// config is the configuration of a rank of a test on one machine.
func config(t testing.TB, place Place, rank, world int) Config {
	return Config{Rank: rank, World: world, LocalRank: -1, LocalWorld: -1, Node: -1, Nodes: 1, Job: "test", Place: place,
		Version: "v", grace: 200 * time.Millisecond,
		Host: fmt.Sprintf("h%d", rank), Lookup: func(string) (string, bool) { return "", false },
		Waiting: func(s string) { t.Log("waiting:", s) }, Warn: func(s string) { t.Log("warning:", s) }}
}

// try joins the ranks of a job at a time. edit may change their configurations, and returns false for a rank that does not come.
func try(t testing.TB, world int, edit func(c *Config) bool) ([]*Group, []error) {
	place, groups, errs := inProcess(), make([]*Group, world), make([]error, world)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	for r := range world {
		c := config(t, place, r, world)
		if edit != nil && !edit(&c) {
			continue
		}
		wg.Go(func() { groups[r], errs[r] = Join(ctx, c) })
	}
	wg.Wait()
	t.Cleanup(func() { closeAll(groups) })
	return groups, errs
}

// join joins all ranks of a job.
func join(t testing.TB, world int, edit func(c *Config)) []*Group {
	t.Helper()
	groups, errs := try(t, world, func(c *Config) bool {
		if edit != nil {
			edit(c)
		}
		return true
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return groups
}

func closeAll(groups []*Group) {
	var wg sync.WaitGroup
	for _, g := range groups {
		if g != nil {
			wg.Go(func() { g.Close() })
		}
	}
	wg.Wait()
}

// onAll runs do for all ranks at a time.
func onAll(groups []*Group, do func(g *Group)) {
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() { do(g) })
	}
	wg.Wait()
}

func all(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// The whole of it: ranks meet, connect, exchange and leave.
func TestJob(t *testing.T) {
	const world = 4
	groups := join(t, world, func(c *Config) {
		c.Machine = fmt.Sprint(c.Rank / 2)
		c.Device = fmt.Sprint("npu:", c.Rank)
	})
	onAll(groups, func(g *Group) {
		r := g.Roster()
		if len(r.Members) != world || r.Nodes() != 2 || fmt.Sprint(r.OnNode(1), r.Rail(1), r.NodeOf()) != "[2 3] [1 3] [0 0 1 1]" || r.Job != "test" {
			t.Errorf("rank %d: %+v", g.Rank(), r)
		}
		m := r.Members[3]
		if m.Host != "h3" || m.LocalRank != 1 || m.Device != "npu:3" || !strings.Contains(groups[3].Address(), m.Addr.String()) {
			t.Errorf("rank %d: %+v, %s", g.Rank(), m, groups[3].Address())
		}
		got, err := g.Exchange(t.Context(), "names", []byte(fmt.Sprint("r", g.Rank())))
		if err != nil || fmt.Sprintf("%s", got) != "[r0 r1 r2 r3]" {
			t.Errorf("rank %d: %s, %v", g.Rank(), got, err)
		}
		for stream := range uint32(2) {
			talk(t, g, stream, all(world))
		}
		talk(t, g, 7, r.Rail(r.Members[g.Rank()].LocalRank))
	})
	begun := time.Now()
	closeAll(groups)
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("leaving took %v", d)
	}
	for _, g := range groups {
		if err := g.Err(); err != nil {
			t.Error(err)
		}
		g.Close()
	}
}

// talk connects a rank with others, and checks that each connection leads to the right one.
func talk(t *testing.T, g *Group, stream uint32, ranks []int) {
	conns, err := g.Connect(t.Context(), stream, ranks)
	if err != nil {
		t.Error(err)
		return
	}
	for i, conn := range conns {
		if (conn == nil) != (ranks[i] == g.Rank()) {
			t.Errorf("rank %d: connection to rank %d is %v", g.Rank(), ranks[i], conn)
		}
		if conn != nil {
			fmt.Fprintf(conn, "%02d", g.Rank())
		}
	}
	for i, conn := range conns {
		if conn == nil {
			continue
		}
		b := make([]byte, 2)
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(b); err != nil || string(b) != fmt.Sprintf("%02d", ranks[i]) {
			t.Errorf("rank %d, stream %d: connection to rank %d says %q, %v", g.Rank(), stream, ranks[i], b, err)
		}
		defer conn.Close()
	}
}

// freePort returns a port that was free a moment ago.
func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
