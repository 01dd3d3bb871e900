package meet

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// notes collects sentences.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.list, "\n")
}

// coordinatorAddr returns the address of the listener of rank 0.
func coordinatorAddr(g *Group) netip.AddrPort {
	a := g.coordinator.acceptor.listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Strangers at the coordinator and at the data listeners are refused quickly, cost one line in the log, and do not disturb the job.
func TestStrangers(t *testing.T) {
	for name, hello := range map[string][]byte{
		"random bytes": random(200),
		"HTTP":         []byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":          {0x16, 3, 1, 2, 0},
		"one byte":     {'G'},
		"old protocol": append([]byte("gotrain\x01"), make([]byte, 100)...),
		"long job":     append((&wire.Hello{Version: 1, Kind: 1}).Append(nil)[:64], 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			var log notes
			groups := join(t, 2, func(c *Config) { c.Warn = log.add })
			for _, addr := range []netip.AddrPort{coordinatorAddr(groups[0]), groups[0].Roster().Members[1].Addr} {
				for range 20 {
					begun := time.Now()
					conn, err := net.Dial("tcp", addr.String())
					if err != nil {
						t.Fatal(err)
					}
					conn.Write(hello)
					conn.SetReadDeadline(time.Now().Add(10 * time.Second))
					if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v answers a stranger: %d bytes, %v", addr, n, err)
					}
					if d := time.Since(begun); d > time.Second {
						t.Errorf("refused after %v", d)
					}
					conn.Close()
				}
			}
			onAll(groups, func(g *Group) { talk(t, g, 1, all(2)) })
			if s := log.String(); strings.Count(s, "refused a connection from 127.0.0.1") != 2 {
				t.Errorf("want one line from each of two listeners:\n%s", s)
			}
		})
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	b[0] = 'x'
	return b
}

// Many connections that say nothing neither keep the ranks of the job out, nor stay.
func TestSlowLoris(t *testing.T) {
	var log notes
	groups := join(t, 2, func(c *Config) { c.Warn, c.Timeouts.Handshake = log.add, 500*time.Millisecond })
	addr := groups[0].Roster().Members[0].Addr // of the data listener
	var idle []net.Conn
	for i := range 2 * maxPending {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			conn.Write([]byte("gotrain\x00"))
		}
		idle = append(idle, conn)
	}
	onAll(groups, func(g *Group) { talk(t, g, 1, all(2)) })
	for _, conn := range idle {
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a connection that says nothing stays: %v", err)
		}
	}
	if s := log.String(); !strings.Contains(s, "no handshake within 500ms") && !strings.Contains(s, "too many connections without a handshake") {
		t.Error(s)
	}
}

// Processes of other jobs, of other generations, and with other numbers, get a verdict in words. The job goes on.
func TestVerdicts(t *testing.T) {
	groups := join(t, 2, func(c *Config) { c.Generation, c.Token = 4, []byte("secret") })
	at := Place{Addr: coordinatorAddr(groups[0]).String(), How: "MASTER_ADDR"}
	for want, edit := range map[string]func(c *Config){
		"generation 3 is over: the job has been restarted, and is at generation 4": func(c *Config) { c.Generation = 3 },
		"is of job \"other\", here is job \"test\"":                                func(c *Config) { c.Job = "other" },
		"rank 1 has another token than job \"test\"":                               func(c *Config) { c.Token = []byte("guess") },
		"rank 1 is one of 3 ranks, this job has 2":                                 func(c *Config) { c.World = 3 },
		"rank 1 is taken by host h1 (process":                                      func(c *Config) {},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := config(t, at, 1, 2)
			c.Generation, c.Token = 4, []byte("secret")
			edit(&c)
			g, err := Join(t.Context(), c)
			var r *RefusedError
			if g != nil || !errors.As(err, &r) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\nhint: ") || r.ExitCode() != 69 {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	t.Run("a newer generation waits", func(t *testing.T) {
		t.Parallel()
		var said notes
		c := config(t, at, 1, 2)
		c.Generation, c.Token, c.Timeouts.Start = 5, []byte("secret"), 500*time.Millisecond
		c.Waiting = said.add
		_, err := Join(t.Context(), c)
		var late *LateError
		if !errors.As(err, &late) || !strings.Contains(err.Error(), "generation 5 has not begun: generation 4 of the job still runs") {
			t.Error(err)
		}
	})
	t.Cleanup(func() { // after the parallel ones
		for _, g := range groups {
			if g.Err() != nil {
				t.Error(g.Err())
			}
		}
	})
}

// A rank with another token than a job that waits for its ranks is refused at once: that is no earlier job, which would be about to end.
func TestWrongTokenIsFinal(t *testing.T) {
	c := config(t, Place{Addr: "127.0.0.1:0"}, 0, 2)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	zero := newCoordinator(&c, time.Hour, l, []byte("secret"))
	defer zero.end()
	one := config(t, Place{Addr: l.Addr().String(), How: "MASTER_ADDR"}, 1, 2)
	one.Token, one.grace = []byte("guess"), time.Hour
	_, err = Join(t.Context(), one)
	var r *RefusedError
	if !errors.As(err, &r) || !strings.Contains(err.Error(), "has another token than job") || !strings.Contains(err.Error(), "\nhint: ") {
		t.Error(err)
	}
}

// Both versions of the protocol are named, whatever else a client of another version says.
func TestOtherProtocol(t *testing.T) {
	groups := join(t, 2, nil)
	h := groups[1].hello(wire.Control, 0, 0)
	h.Version = 9
	b := h.Append(nil)
	conn, err := net.Dial("tcp", coordinatorAddr(groups[0]).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	conn.Write(b)
	nonce := make([]byte, wire.NonceSize)
	io.ReadFull(conn, nonce)
	conn.Write(wire.Proof(groups[1].token, b, nonce))
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Contains(got, []byte("rank 1 speaks version 9 of the protocol, this job version 2")) {
		t.Errorf("%q, %v", got, err)
	}
}

// A server that says yes but does not know the token is not believed.
func TestForeignServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d := authenticator{job: "test", token: []byte("guess"), judge: func(*wire.Hello) (wire.Verdict, string) { return wire.Accepted, "" }}
			go func() {
				defer conn.Close()
				b := make([]byte, wire.HelloSize+len(d.job))
				io.ReadFull(conn, b)
				nonce := make([]byte, wire.NonceSize)
				conn.Write(nonce)
				io.ReadFull(conn, make([]byte, wire.ProofSize))
				conn.Write(wire.AppendAccept(nil, wire.Accepted, "", d.token, b, nonce))
			}()
		}
	}()
	c := config(t, Place{Addr: l.Addr().String()}, 1, 2)
	c.Token = []byte("secret")
	_, err = Join(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "cannot prove that it belongs to this job") {
		t.Error(err)
	}
}

// A data listener is called by its rank: after a restart another rank may have its port.
func TestWrongRankCalled(t *testing.T) {
	groups := join(t, 3, nil)
	h := groups[2].hello(wire.Data, 0, 1)
	_, err := dial(t.Context(), groups[0].Roster().Members[1].Addr, h, groups[2].token, time.Second)
	if err == nil || err.Error() != "rank 2 called rank 0, but here is rank 1" {
		t.Error(err)
	}
	h = groups[2].hello(wire.Control, 0, 0)
	if _, err = dial(t.Context(), groups[0].Roster().Members[1].Addr, h, groups[2].token, time.Second); err == nil {
		t.Error("a data listener accepts a control connection")
	}
	h = groups[2].hello(wire.Data, 0, 0)
	_, err = dial(t.Context(), coordinatorAddr(groups[0]), h, groups[2].token, time.Second)
	if err == nil || !strings.Contains(err.Error(), "here is the coordinator") {
		t.Error(err)
	}
}

// Two jobs that were given one port: the second rank 0 names the process that has it, the second rank 1 the job that answers.
func TestTwoJobsOnOnePort(t *testing.T) {
	groups := join(t, 2, nil)
	at := Place{Addr: coordinatorAddr(groups[0]).String()}
	var wg sync.WaitGroup
	defer wg.Wait()
	for rank, want := range []string{"rank 0 cannot listen on port", "rank 1 is of job \"second\", here is job \"test\""} {
		wg.Go(func() {
			c := config(t, at, rank, 2)
			c.Job = "second"
			if _, err := Join(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: %v", rank, err)
			} else if rank == 0 && !strings.Contains(err.Error(), fmt.Sprintf("address in use by process %d (", groups[0].roster.Members[0].PID)) {
				t.Error(err)
			}
		})
	}
}
