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

// backlog holds data connections that other ranks have made until Connect takes them.
type backlog struct {
	acceptor *acceptor

	mu      sync.Mutex
	parked  map[connKey]*parkedConn
	of      map[int]int // connections parked, by rank
	changed chan struct{}
	closed  bool
}

type connKey struct {
	stream uint32
	rank   int
}

type parkedConn struct {
	conn   *net.TCPConn
	number uint64 // a later connection replaces an earlier one, whose client gave up in the middle of the handshake
}

func newBacklog(cfg *Config, l *net.TCPListener, token []byte) *backlog {
	b := &backlog{parked: map[connKey]*parkedConn{}, of: map[int]int{}, changed: make(chan struct{})}
	b.acceptor = &acceptor{listener: l, limit: cfg.Timeouts.Handshake, refused: &throttle{every: tell, tell: cfg.Warn}, admit: b.park,
		authenticator: authenticator{job: wire.JobName(cfg.Job), generation: cfg.Generation, token: token, judge: func(h *wire.Hello) (wire.Verdict, string) {
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
	b.acceptor.open()
	return b
}

func (b *backlog) park(conn *net.TCPConn, h *wire.Hello, number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := connKey{h.Stream, int(h.Rank)}
	old := b.parked[at]
	switch {
	case b.closed || h.Stream == probing || old != nil && old.number > number || old == nil && b.of[at.rank] >= maxParked:
		conn.Close()
		return
	case old != nil:
		old.conn.Close()
	default:
		b.of[at.rank]++
	}
	b.parked[at] = &parkedConn{conn, number}
	close(b.changed)
	b.changed = make(chan struct{})
}

// take returns the connection that a rank made, and waits for it up to limit.
func (b *backlog) take(ctx context.Context, at connKey, limit time.Duration) *net.TCPConn {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		b.mu.Lock()
		g, changed := b.parked[at], b.changed
		if g != nil {
			delete(b.parked, at)
			b.of[at.rank]--
		}
		b.mu.Unlock()
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

func (b *backlog) close() {
	b.acceptor.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, g := range b.parked {
		g.conn.Close()
	}
	clear(b.parked)
}
