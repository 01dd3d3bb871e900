package meet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// Pair is a pair of ranks between which no connection can be made, in one direction.
type Pair struct {
	From, To int
	Why      string
	Back     string // why the other direction does not work either; "" if it works
}

// MeshError reports the pairs of ranks that cannot connect, the same on all ranks.
type MeshError struct {
	Pairs []Pair
	text  string
	hint  string
}

func (e *MeshError) Error() string { return withHint("meet: mesh: "+e.text, e.hint) }

// ExitCode returns 69.
func (e *MeshError) ExitCode() int { return launch.ExitUnavailable }

// Connect makes authenticated data connections between the given ranks, all of which call it with the same stream and the same ranks. It returns them by index
// in ranks, nil for this rank. The higher rank of a pair dials. If a pair cannot connect, all ranks get the same *MeshError.
func (g *Group) Connect(ctx context.Context, stream uint32, ranks []int) ([]*net.TCPConn, error) {
	me := slices.Index(ranks, g.cfg.Rank)
	if me < 0 || stream == probing {
		return nil, fmt.Errorf("meet: Connect: ranks %v of stream %d, rank %d is not among them", ranks, stream, g.cfg.Rank)
	}
	for i, r := range ranks {
		if r < 0 || r >= g.cfg.World || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("meet: Connect: %v is not a list of ranks", ranks)
		}
	}
	c := &connecting{g: g, stream: stream, ranks: ranks, conns: make([]*net.TCPConn, len(ranks)), until: time.Now().Add(limit(ctx, g.cfg.Timeouts.Mesh))}
	ctx, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		select {
		case <-g.down: // no attempt goes on after a failure
			cancel()
		case <-over:
		}
	})
	err := c.run(ctx)
	close(over)
	wg.Wait()
	if err != nil {
		for _, conn := range c.conns {
			if conn != nil {
				conn.Close()
			}
		}
		return nil, err
	}
	return c.conns, nil
}

// connecting is a Connect in progress.
type connecting struct {
	g      *Group
	stream uint32
	ranks  []int
	conns  []*net.TCPConn
	until  time.Time
}

// run dials the lower ranks, tells the others how it went, and takes the connections of the higher ones.
func (c *connecting) run(ctx context.Context) error {
	fails := make([]string, len(c.ranks)) // why a lower rank cannot be reached
	var wg sync.WaitGroup
	for i, r := range c.ranks {
		if r < c.g.cfg.Rank {
			wg.Go(func() { c.conns[i], fails[i] = c.reach(ctx, r) })
		}
	}
	wg.Wait()
	if err := c.g.Err(); err != nil {
		return err
	}
	if err := ctx.Err(); err == context.Canceled {
		return context.Cause(ctx)
	}
	pairs, err := c.share(ctx, "dial", fails)
	if err != nil {
		return err
	}
	if len(pairs) > 0 {
		return c.probe(ctx, pairs)
	}
	for i, r := range c.ranks {
		if r <= c.g.cfg.Rank {
			continue
		}
		if c.conns[i] = c.g.data.take(ctx, connKey{c.stream, r}, c.g.cfg.Timeouts.Handshake); c.conns[i] == nil {
			if err := c.g.Err(); err != nil {
				return err
			}
			return &LateError{"mesh", c.g.cfg.Timeouts.Handshake, []int{r}, "the connection of " + c.g.roster.Name(r) + " has not come through", ""}
		}
	}
	for i, conn := range c.conns {
		if conn != nil {
			if err := keep(conn, deadAfter*c.g.beat, c.between(c.ranks[i], conn)); err != nil {
				return err
			}
		}
	}
	return nil
}

// between reports whether a connection leaves the host. On one host no packet is lost, and a job may be suspended as a whole with data on their way.
func (c *connecting) between(rank int, conn *net.TCPConn) bool {
	local, remote := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
	return !local.IP.Equal(remote.IP) && !remote.IP.IsLoopback()
}

// reach dials one rank until it succeeds, the deadline passes, or its host has rejected the connection for a while.
func (c *connecting) reach(ctx context.Context, rank int) (*net.TCPConn, string) {
	var b backoff
	var since time.Time // of rejections
	var last error
	for {
		conn, err := c.g.dial(ctx, rank, c.stream)
		if err == nil {
			return conn, ""
		}
		if last == nil || time.Until(c.until) > cutShort { // an attempt that the deadline ended explains less than the one before
			last = err
		}
		var r *refusal
		switch {
		case errors.As(err, &r):
			return nil, r.reason
		case !lasting(err):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > rejected:
			return nil, reason(last)
		}
		if !b.wait(ctx) {
			return nil, reason(last)
		}
	}
}

// reason is why a rank cannot be reached; never empty.
func reason(err error) string {
	why, _ := unreachable(err)
	return why
}

func (g *Group) dial(ctx context.Context, rank int, stream uint32) (*net.TCPConn, error) {
	return dial(ctx, g.roster.Members[rank].Addr, g.hello(wire.Data, rank, stream), g.token, g.cfg.Timeouts.Handshake)
}

// share tells all ranks which ones this rank cannot reach, and returns the pairs of all.
func (c *connecting) share(ctx context.Context, what string, fails []string) (pairs []Pair, err error) {
	mine := []byte(strings.Join(fails, "\x00"))
	key := fmt.Sprintf("%s of stream %d", what, c.stream)
	wait := max(0, time.Until(c.until)) + c.g.cfg.Timeouts.Handshake
	all, err := c.g.gather(context.WithoutCancel(ctx), key, "connecting", "mesh", c.ranks, mine, wait)
	if err != nil {
		return nil, err
	}
	for i, b := range all {
		for j, why := range bytes.Split(b, []byte{0}) {
			if len(why) > 0 && j < len(c.ranks) {
				pairs = append(pairs, Pair{From: c.ranks[i], To: c.ranks[j], Why: wire.Text(string(why), wire.MaxReason)})
			}
		}
	}
	return pairs, nil
}

// probe tries the pairs that failed in the other direction, and returns the error for all.
func (c *connecting) probe(ctx context.Context, pairs []Pair) error {
	fails := make([]string, len(c.ranks))
	var wg sync.WaitGroup
	for _, p := range pairs {
		if i := slices.Index(c.ranks, p.From); p.To == c.g.cfg.Rank {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
				defer cancel()
				conn, err := c.g.dial(ctx, p.From, probing)
				if err != nil {
					fails[i] = reason(err)
					return
				}
				conn.Close()
			})
		}
	}
	wg.Wait()
	c.until = time.Now().Add(2 * attempt)
	back, err := c.share(ctx, "probe", fails)
	if err != nil {
		return err
	}
	for i := range pairs {
		p := &pairs[i]
		if at := slices.IndexFunc(back, func(b Pair) bool { return b.From == p.To && b.To == p.From }); at >= 0 {
			p.Back = back[at].Why
		}
	}
	return c.g.meshError(pairs)
}

// meshError describes pairs that cannot connect: "rank 3 (10.0.0.2) cannot reach rank 5 (10.1.0.7:41823): no route to host; 5 → 3 works".
func (g *Group) meshError(pairs []Pair) *MeshError {
	e := &MeshError{Pairs: pairs}
	const most = 16
	var lines []string
	works := false
	for _, p := range pairs[:min(most, len(pairs))] {
		from, to := g.roster.Members[p.From], g.roster.Members[p.To]
		s := fmt.Sprintf("rank %d (%s, %v) cannot reach rank %d (%s, %v): %s; %d → %d ", p.From, from.Host, from.Addr.Addr(), p.To, to.Host, to.Addr, p.Why,
			p.To, p.From)
		if p.Back == "" {
			s, works = s+"works", true
		} else {
			s += "fails too: " + p.Back
		}
		lines = append(lines, s)
	}
	if n := len(pairs) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more pairs", n))
	}
	e.text = strings.Join(lines, "\n  ")
	e.hint = "hosts need a network that reaches from each to each: choose one with interface = \"NAME\", or open the ports"
	if works {
		e.hint = "a firewall lets connections pass in one direction only: open the ports of port_range in both"
	}
	return e
}
