package meet

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// At most so many connections may be unproved at a time. When a further one comes, the oldest is dropped, but not before it had time for a handshake.
const (
	maxUnproved = 64
	minUnproved = 100 * time.Millisecond
)

// gate lets connections in through a handshake. Strangers cost a closed socket and, now and then, a line in the log.
type gate struct {
	listener *net.TCPListener
	door     door
	limit    time.Duration // of a handshake
	admit    func(conn *net.TCPConn, h *wire.Hello, number uint64)
	refused  *rare

	mu       sync.Mutex
	unproved []*entrant // oldest first
	closed   bool
	free     chan struct{} // an unproved connection went
	wg       sync.WaitGroup
}

type entrant struct {
	conn   *net.TCPConn
	at     time.Time
	number uint64 // in the order of acceptance
}

// open begins to accept.
func (g *gate) open() {
	g.free = make(chan struct{}, 1)
	g.wg.Go(g.accept)
}

func (g *gate) accept() {
	for n := uint64(1); ; n++ {
		conn, err := g.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptor is left, or the client went before it was accepted
			time.Sleep(20 * time.Millisecond)
			continue
		}
		e := &entrant{conn: conn, at: time.Now(), number: n}
		if !g.enter(e) {
			conn.Close()
			return
		}
		g.wg.Go(func() { g.serve(e) })
	}
}

// enter adds an unproved connection, and drops the oldest where there are too many. It returns false after close.
func (g *gate) enter(e *entrant) bool {
	for {
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return false
		}
		if len(g.unproved) < maxUnproved {
			g.unproved = append(g.unproved, e)
			g.mu.Unlock()
			return true
		}
		oldest := g.unproved[0]
		young := minUnproved - time.Since(oldest.at)
		if young <= 0 {
			g.unproved = g.unproved[1:]
			oldest.conn.Close()
		}
		g.mu.Unlock()
		if young > 0 {
			select {
			case <-g.free:
			case <-time.After(young):
			}
		}
	}
}

// serve leads one connection through the handshake.
func (g *gate) serve(e *entrant) {
	e.conn.SetDeadline(e.at.Add(g.limit))
	h, err := g.door.answer(e.conn)
	if err != nil {
		g.refused.say(func() string { return fmt.Sprintf("refused a connection from %v: %s", e.conn.RemoteAddr(), g.why(err)) })
		var r *refusal
		if errors.As(err, &r) {
			linger(e.conn)
		}
	} else {
		e.conn.SetDeadline(time.Time{})
	}
	g.mu.Lock()
	at := slices.Index(g.unproved, e)
	if at >= 0 {
		g.unproved = slices.Delete(g.unproved, at, at+1)
	}
	let := err == nil && at >= 0 && !g.closed
	g.mu.Unlock()
	select {
	case g.free <- struct{}{}:
	default:
	}
	if !let {
		e.conn.Close()
		return
	}
	g.admit(e.conn, &h, e.number)
}

// linger lets the client read the refusal: closing a socket with unread bytes would destroy it on its way.
func linger(conn *net.TCPConn) {
	conn.CloseWrite()
	var b [64]byte
	for range 8 {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
	}
}

func (g *gate) why(err error) string {
	var r *refusal
	var timeout net.Error
	switch {
	case errors.As(err, &r):
		return r.reason
	case errors.Is(err, wire.ErrMagic):
		return "it does not speak gotrain's protocol"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no handshake within %v", g.limit)
	case errors.Is(err, net.ErrClosed):
		return "too many unproved connections"
	case errors.Is(err, errSilent):
		return errSilent.Error()
	}
	return "it broke off the handshake"
}

// close ends listening and every handshake, and waits for them.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	for _, e := range g.unproved {
		e.conn.Close()
	}
	g.mu.Unlock()
	g.listener.Close()
	select {
	case g.free <- struct{}{}:
	default:
	}
	g.wg.Wait()
}

// rare says at most one sentence in a while, and how many it left out.
type rare struct {
	every time.Duration
	tell  func(string)

	mu   sync.Mutex
	last time.Time
	left int
}

func (r *rare) say(sentence func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.last.IsZero() && now.Sub(r.last) < r.every {
		r.left++
		return
	}
	s := sentence()
	if r.left > 0 {
		s += fmt.Sprintf(" (%d more since the last of these lines)", r.left)
	}
	r.last, r.left = now, 0
	r.tell(s)
}
