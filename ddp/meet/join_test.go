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

	"github.com/gotrain/gotrain/ddp/launch"
)

// What keeps a job from starting is told to every rank, in the same words.
func TestProblemsOfTheStart(t *testing.T) {
	for want, edit := range map[string]func(c *Config){
		"rank 1 on host h1 runs gotrain new, rank 0 on host h0 runs gotrain v": func(c *Config) {
			if c.Rank == 1 {
				c.Version = "new"
			}
		},
		"ranks 1 and 2 on host h2 both use device npu:3": func(c *Config) {
			if c.Rank > 0 {
				c.Device = "npu:3"
			}
		},
		"rank 0 on host h0 listens on the loopback address 127.0.0.1, which rank 2 on host h2 cannot reach": func(c *Config) {
			if c.Rank == 2 {
				c.network = "another"
			}
		},
		"are both local rank 0": func(c *Config) { c.LocalRank, c.LocalWorld = 0, 3 },
	} {
		t.Run(want, func(t *testing.T) {
			groups, errs := try(t, 3, func(c *Config) bool { edit(c); return true })
			for r, err := range errs {
				if groups[r] != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\nhint: ") ||
					launch.ExitCode(err) != launch.ExitUnavailable {
					t.Errorf("rank %d: %v, want %s", r, err, want)
				}
			}
		})
	}
}

// Two processes with one rank: both hosts are named, on all ranks.
func TestTwoOfOneRank(t *testing.T) {
	_, errs := try(t, 4, func(c *Config) bool {
		if c.Rank == 3 {
			c.Rank = 2
		}
		return true
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "two rank 2: host h2 (process ") && !strings.Contains(err.Error(), "two rank 2: host h3 (process ") {
			t.Errorf("rank %d: %v", r, err)
		} else if !strings.Contains(err.Error(), "host h2") || !strings.Contains(err.Error(), "host h3") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Ranks that do not come are named on all others, with the exit code of a deadline.
func TestMissingRanks(t *testing.T) {
	_, errs := try(t, 8, func(c *Config) bool {
		c.LocalRank, c.LocalWorld, c.Timeouts.Start = c.Rank%4, 4, time.Second
		c.Host = fmt.Sprint("n", c.Rank/4+1)
		return c.Rank < 4 || c.Rank == 6
	})
	for r, err := range errs {
		if r >= 4 && r != 6 {
			continue
		}
		var late *LateError
		const want = "meet: start: after 1s: waiting for ranks 4, 5, 7 of host n2; 5 of 8 have joined\nhint: "
		if !errors.As(err, &late) || !strings.HasPrefix(err.Error(), want) || fmt.Sprint(late.Blames()) != "[4 5 7]" || launch.ExitCode(err) != launch.ExitTimeout {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestMissingSentence(t *testing.T) {
	h := &coordinator{cfg: &Config{World: 16, LocalWorld: 4}, peers: make([]*peer, 16)}
	h.peers[0] = &peer{}
	h.peers[0].join.Host = "n1"
	for want, per := range map[string]int{
		"waiting for ranks 1–3 of host n1, ranks 4–7 of node 1, ranks 8–11 of node 2 and ranks 12–15 of node 3; 1 of 16 have joined": 4,
		"waiting for ranks 1–15; 1 of 16 have joined": -1,
	} {
		h.cfg.LocalWorld = per
		if got := h.missing(); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// Rank 0 that does not come: the others say what they met at its address, and the sentence says what to do.
func TestNoRankZero(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	for want, place := range map[string]Place{
		"rank 1 on host h1 cannot reach rank 0 (MASTER_ADDR): " + addr + ": connection refused\nhint: nothing listens there": {Addr: addr, How: "MASTER_ADDR"},
		"no.such.host.invalid:1: the name no.such.host.invalid does not resolve":                                             {Addr: "no.such.host.invalid:1"},
		"localhost:1 (127.0.0.1): connection refused":                                                                        {Addr: "localhost:1"},
		"rank 0 has not published its address (test)\nhint: look at the first error of rank 0":                               inProcess(),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := config(t, place, 1, 2)
			c.Timeouts.Start = 300 * time.Millisecond
			_, err := Join(t.Context(), c)
			if launch.ExitCode(err) != launch.ExitTimeout || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "meet: start: after ") {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for want, edit := range map[string]func(c *Config){
		"rank 2 of 2 ranks":                                    func(c *Config) { c.Rank = 2 },
		"224.0.0.1 (article) is a multicast address":           func(c *Config) { c.Place = Place{Addr: "224.0.0.1:23456", How: "article"} },
		"nothing says where rank 0 is":                         func(c *Config) { c.Place = Place{} },
		"interface = nosuch0: no interface of host":            func(c *Config) { c.Interface, c.Rank, c.Place = "nosuch0", 0, inProcess() },
		"\"10.0/8\" is not a network":                          func(c *Config) { c.Interface = "10.0/8" },
		"9-8 is not a range of ports":                          func(c *Config) { c.Ports, c.Rank, c.Place = [2]int{9, 8}, 0, inProcess() },
		"NCCL_SOCKET_IFNAME=nosuch: no interface of host":      func(c *Config) { c.Lookup, c.Rank, c.Place = env("NCCL_SOCKET_IFNAME=nosuch"), 0, inProcess() },
		"rank 0 is, and there is no way to publish it\nhint: ": func(c *Config) { c.Rank, c.Place = 0, Place{} },
	} {
		c := config(t, Place{Addr: "127.0.0.1:1"}, 1, 2)
		edit(&c)
		_, err := Join(t.Context(), c)
		if launch.ExitCode(err) != launch.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func env(list ...string) launch.Lookup { return launch.LookupIn(list) }

// A rank that is told to stop waiting returns its cause, and the others learn that it is gone.
func TestCancelledStart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	place := inProcess()
	c := config(t, place, 0, 3)
	result := make(chan error, 2)
	go func() { _, err := Join(t.Context(), c); result <- err }()
	d := config(t, place, 1, 3)
	go func() {
		_, err := Join(ctx, d)
		result <- err
	}()
	time.Sleep(100 * time.Millisecond)
	cancel(enough)
	got := []error{<-result, <-result}
	if !errors.Is(got[0], enough) {
		got[0], got[1] = got[1], got[0]
	}
	var f *Fault
	if !errors.Is(got[0], enough) || !errors.As(got[1], &f) || f.Rank != 1 || f.Host != "h1" || !strings.Contains(f.Reason, "before all ranks had come") {
		t.Errorf("%v; %v", got[0], got[1])
	}
}

// The address of data connections is the one that was asked for, and within the range of ports.
func TestAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lo := min(l.Addr().(*net.TCPAddr).Port, 65535-50)
	l.Close()
	groups := join(t, 3, func(c *Config) {
		c.LocalRank, c.LocalWorld = c.Rank, 3
		c.Ports, c.Interface = [2]int{lo, lo + 50}, "127.0.0.0/8"
	})
	for _, g := range groups {
		a := g.Roster().Members[g.Rank()].Addr
		if !a.Addr().IsLoopback() || int(a.Port()) < lo || int(a.Port()) > lo+50 || !strings.HasSuffix(g.Address(), " (lo, interface = 127.0.0.0/8)") {
			t.Errorf("rank %d: %s", g.Rank(), g.Address())
		}
	}
	if p := coordinatorAddr(groups[0]).Port(); int(p) < lo || int(p) > lo+50 {
		t.Errorf("the coordinator listens on port %d", p)
	}
	onAll(groups, func(g *Group) { talk(t, g, 1, all(3)) })
}

// With several nodes, rank 0 and its neighbours, which meet by loopback, listen where the other hosts reach them.
func TestSeveralNodesOnOneHost(t *testing.T) {
	groups := join(t, 3, func(c *Config) { c.Nodes, c.Machine = 2, fmt.Sprint(c.Rank/2) })
	onAll(groups, func(g *Group) {
		talk(t, g, 1, all(3))
		for _, m := range g.Roster().Members {
			if !m.Addr.Addr().IsValid() || m.Addr.Addr().IsUnspecified() || m.Addr.Port() == 0 {
				t.Errorf("rank %d has %v for rank %d", g.Rank(), m.Addr, m.Rank)
			}
		}
	})
}

func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	addr := l.Addr().String()
	l.Close()
	groups := join(t, 3, func(c *Config) { c.Place = Place{Addr: addr} })
	onAll(groups, func(g *Group) {
		talk(t, g, 1, all(3))
		if a := g.Roster().Members[g.Rank()].Addr.Addr(); a != netip.IPv6Loopback() {
			t.Errorf("rank %d: %v", g.Rank(), a)
		}
	})
}

// An address may be left over from an earlier run; then the rank looks again.
func TestPublishedTwice(t *testing.T) {
	place := inProcess()
	right := place.Lookup
	n := 0
	place.Lookup = func(ctx context.Context) (string, []byte, error) {
		if n++; n == 1 {
			return "127.0.0.1:1", nil, nil
		}
		return right(ctx)
	}
	cleared := make(chan bool, 1)
	place.Clear = func() { cleared <- true }
	groups, errs := try(t, 2, func(c *Config) bool { c.Place = place; return true })
	if err := errors.Join(errs...); err != nil || groups[1].Roster() == nil {
		t.Fatal(err)
	}
	<-cleared
}

// While ranks are missing, every rank is told so now and then; a rank that cannot reach rank 0 says what it meets there.
func TestWaitingSentences(t *testing.T) {
	var said [4]notes
	_, errs := try(t, 4, func(c *Config) bool {
		c.Waiting, c.tell, c.Heartbeat, c.Timeouts.Start = said[c.Rank].add, 50*time.Millisecond, 20*time.Millisecond, 400*time.Millisecond
		c.LocalWorld = 2
		if c.Rank == 3 {
			c.Place = Place{Addr: "127.0.0.1:" + freePort(t)}
		}
		return c.Rank != 2
	})
	for r, want := range []string{0: "waiting for ranks 2, 3 of node 1; 2 of 4 have joined", 1: "waiting for ranks 2, 3 of node 1; 2 of 4 have joined",
		3: "rank 3 on host h3 cannot reach rank 0: 127.0.0.1:"} {
		if r == 2 {
			continue
		}
		if s := said[r].String(); !strings.Contains(s, want) || launch.ExitCode(errs[r]) != launch.ExitTimeout {
			t.Errorf("rank %d: %v; it said:\n%s\nwant %s", r, errs[r], s, want)
		}
	}
}

// A rank on another node that is given a loopback address does not wait for the deadline of the start.
func TestLoopbackAddressOnAnotherNode(t *testing.T) {
	c := config(t, Place{Addr: "127.0.0.1:" + freePort(t)}, 3, 4)
	c.Node, c.Nodes, c.tell = 1, 2, 50*time.Millisecond
	_, err := Join(t.Context(), c)
	const want = "is a loopback address, which other hosts cannot reach, and nothing listens there on this host\nhint: give an address"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
