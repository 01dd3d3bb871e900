package meet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// probing is the stream of a connection that only shows whether a way works.
const probing = 1<<32 - 1

// maxParked limits the connections that one rank may park before they are asked for.
const maxParked = 256

// yard is where data connections that other ranks made wait for Connect.
type yard struct {
	gate *gate

	mu      sync.Mutex
	parked  map[spot]*guest
	of      map[int]int // connections parked, by rank
	changed chan struct{}
	closed  bool
}

type spot struct {
	stream uint32
	rank   int
}

type guest struct {
	conn   *net.TCPConn
	number uint64 // a later connection replaces an earlier one, whose client gave up in the middle of the handshake
}

func newYard(cfg *Config, l *net.TCPListener, token []byte) *yard {
	y := &yard{parked: map[spot]*guest{}, of: map[int]int{}, changed: make(chan struct{})}
	y.gate = &gate{listener: l, limit: cfg.Timeouts.Handshake, refused: &rare{every: tell, tell: cfg.Warn}, admit: y.park,
		door: door{job: wire.JobName(cfg.Job), generation: cfg.Generation, token: token, judge: func(h *wire.Hello) (wire.Verdict, string) {
			switch {
			case h.Kind != wire.Data || int64(h.To) != int64(cfg.Rank):
				return wire.WrongServer, fmt.Sprintf("rank %d called rank %d, but here is rank %d", h.Rank, h.To, cfg.Rank)
			case int64(h.World) != int64(cfg.World):
				return wire.WrongWorld, fmt.Sprintf("rank %d is one of %d ranks, this job has %d", h.Rank, h.World, cfg.World)
			case int64(h.Rank) >= int64(cfg.World) || int64(h.Rank) == int64(cfg.Rank):
				return wire.WrongRank, fmt.Sprintf("rank %d cannot call rank %d of %d", h.Rank, cfg.Rank, cfg.World)
			}
			return wire.Accepted, ""
		}}}
	y.gate.open()
	return y
}

func (y *yard) park(conn *net.TCPConn, h *wire.Hello, number uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := spot{h.Stream, int(h.Rank)}
	old := y.parked[at]
	switch {
	case y.closed || h.Stream == probing || old != nil && old.number > number || old == nil && y.of[at.rank] >= maxParked:
		conn.Close()
		return
	case old != nil:
		old.conn.Close()
	default:
		y.of[at.rank]++
	}
	y.parked[at] = &guest{conn, number}
	close(y.changed)
	y.changed = make(chan struct{})
}

// take returns the connection that a rank made, and waits for it up to limit.
func (y *yard) take(ctx context.Context, at spot, limit time.Duration) *net.TCPConn {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		y.mu.Lock()
		g, changed := y.parked[at], y.changed
		if g != nil {
			delete(y.parked, at)
			y.of[at.rank]--
		}
		y.mu.Unlock()
		if g != nil {
			return g.conn
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-t.C:
			return nil
		}
	}
}

func (y *yard) close() {
	y.gate.close()
	y.mu.Lock()
	defer y.mu.Unlock()
	y.closed = true
	for _, g := range y.parked {
		g.conn.Close()
	}
	clear(y.parked)
}
