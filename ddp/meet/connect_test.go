package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// elsewhere makes one rank believe that another one listens at addr.
func elsewhere(g *Group, rank int, addr string) {
	g.roster.Members[rank].Addr = netip.MustParseAddrPort(addr)
}

// Pairs that cannot connect are named on every rank, in both directions.
func TestFailingPairs(t *testing.T) {
	groups := join(t, 4, func(c *Config) { c.Timeouts.Mesh = 400 * time.Millisecond })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	elsewhere(groups[3], 1, dead)
	elsewhere(groups[2], 0, dead)
	elsewhere(groups[0], 2, dead)
	onAll(groups, func(g *Group) {
		_, err := g.Connect(t.Context(), 1, all(4))
		var m *MeshError
		if !errors.As(err, &m) || len(m.Pairs) != 2 || m.ExitCode() != 69 {
			t.Errorf("rank %d: %v", g.Rank(), err)
			return
		}
		first := fmt.Sprintf("meet: mesh: rank 2 (h2, 127.0.0.1) cannot reach rank 0 (h0, %v): connection refused; 0 → 2 fails too: connection refused",
			g.roster.Members[0].Addr)
		second := fmt.Sprintf("\n  rank 3 (h3, 127.0.0.1) cannot reach rank 1 (h1, %v): connection refused; 1 → 3 works\nhint: a firewall",
			g.roster.Members[1].Addr)
		if !strings.HasPrefix(err.Error(), first) || !strings.Contains(err.Error(), second) {
			t.Errorf("rank %d: %v\nwant %s%s", g.Rank(), err, first, second)
		}
	})
	for _, g := range groups {
		if g.Err() != nil {
			t.Errorf("the control plane has not failed, but: %v", g.Err())
		}
	}
}

// A rank that does not come to Connect is named.
func TestConnectWithoutOneRank(t *testing.T) {
	groups := join(t, 3, func(c *Config) { c.Timeouts.Mesh, c.Timeouts.Handshake = 200*time.Millisecond, time.Second })
	onAll(groups[:2], func(g *Group) {
		_, err := g.Connect(t.Context(), 1, all(3))
		var late *LateError
		if !errors.As(err, &late) || fmt.Sprint(late.Blames()) != "[2]" || !strings.Contains(err.Error(), "connecting: waiting for rank 2 of host h2") {
			t.Errorf("rank %d: %v", g.Rank(), err)
		}
	})
}

// A failure of the job ends Connect at once.
func TestFailureDuringConnect(t *testing.T) {
	groups := join(t, 3, nil)
	result := make(chan error)
	go func() {
		_, err := groups[0].Connect(t.Context(), 1, all(3))
		result <- err
	}()
	time.Sleep(20 * time.Millisecond)
	groups[2].Abort(errors.New("no memory"))
	if err := <-result; err != groups[0].Err() || err == nil {
		t.Error(err)
	}
}

func TestWrongConnect(t *testing.T) {
	groups := join(t, 3, nil)
	for _, ranks := range [][]int{{1, 2}, {0, 3}, {0, 1, 1}, {-1, 0}, nil} {
		if _, err := groups[0].Connect(t.Context(), 1, ranks); err == nil {
			t.Errorf("%v: no error", ranks)
		}
	}
	if conns, err := groups[0].Connect(t.Context(), 1, []int{0}); err != nil || len(conns) != 1 || conns[0] != nil {
		t.Error(conns, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := groups[2].Connect(ctx, 1, all(3)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A client that gave up in the middle of a handshake and came again has one connection: the later one, in whatever order they are parked.
func TestLaterConnectionCounts(t *testing.T) {
	groups := join(t, 2, nil)
	y := groups[0].data
	var conns [3]*net.TCPConn
	for i := range conns {
		c, err := net.Dial("tcp", coordinatorAddr(groups[0]).String())
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.TCPConn)
	}
	h := groups[1].hello(2, 0, 5)
	y.park(conns[0], &h, 1001)
	y.park(conns[2], &h, 1003)
	y.park(conns[1], &h, 1002)
	got := y.take(t.Context(), connKey{5, 1}, time.Second)
	if got != conns[2] || y.of[1] != 0 {
		t.Errorf("%v, %v", got, y.of)
	}
	for i, c := range conns {
		if open := c.SetDeadline(time.Now()) == nil; open != (i == 2) {
			t.Errorf("connection %d open: %v", i, open)
		}
	}
	got.Close()
}
