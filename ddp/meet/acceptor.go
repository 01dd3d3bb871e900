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

// At most maxPending connections may be in their handshake at a time. When another one comes, the oldest is dropped, but not before it has had minPending.
const (
	maxPending = 64
	minPending = 100 * time.Millisecond
)

// acceptor accepts connections that pass the handshake. Strangers cost a closed socket and, now and then, a line in the log.
type acceptor struct {
	listener      *net.TCPListener
	authenticator authenticator
	limit         time.Duration // of a handshake
	admit         func(conn *net.TCPConn, h *wire.Hello, number uint64)
	refused       *throttle

	mu      sync.Mutex
	pending []*pendingConn // oldest first
	closed  bool
	free    chan struct{} // a pending connection ended
	wg      sync.WaitGroup
}

type pendingConn struct {
	conn   *net.TCPConn
	at     time.Time
	number uint64 // in the order of acceptance
}

// open begins to accept.
func (a *acceptor) open() {
	a.free = make(chan struct{}, 1)
	a.wg.Go(a.accept)
}

func (a *acceptor) accept() {
	for n := uint64(1); ; n++ {
		conn, err := a.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptor is left, or the client went before it was accepted
			time.Sleep(20 * time.Millisecond)
			continue
		}
		e := &pendingConn{conn: conn, at: time.Now(), number: n}
		if !a.add(e) {
			conn.Close()
			return
		}
		a.wg.Go(func() { a.serve(e) })
	}
}

// add adds a pending connection, and drops the oldest if there are too many. It returns false after close.
func (a *acceptor) add(e *pendingConn) bool {
	for {
		a.mu.Lock()
		if a.closed {
			a.mu.Unlock()
			return false
		}
		if len(a.pending) < maxPending {
			a.pending = append(a.pending, e)
			a.mu.Unlock()
			return true
		}
		oldest := a.pending[0]
		young := minPending - time.Since(oldest.at)
		if young <= 0 {
			a.pending = a.pending[1:]
			oldest.conn.Close()
		}
		a.mu.Unlock()
		if young > 0 {
			select {
			case <-a.free:
			case <-time.After(young):
			}
		}
	}
}

// serve leads one connection through the handshake.
func (a *acceptor) serve(e *pendingConn) {
	e.conn.SetDeadline(e.at.Add(a.limit))
	h, err := a.authenticator.answer(e.conn)
	if err != nil {
		a.refused.say(func() string { return fmt.Sprintf("refused a connection from %v: %s", e.conn.RemoteAddr(), a.why(err)) })
		var r *refusal
		if errors.As(err, &r) {
			linger(e.conn)
		}
	} else {
		e.conn.SetDeadline(time.Time{})
	}
	a.mu.Lock()
	at := slices.Index(a.pending, e)
	if at >= 0 {
		a.pending = slices.Delete(a.pending, at, at+1)
	}
	let := err == nil && at >= 0 && !a.closed
	a.mu.Unlock()
	select {
	case a.free <- struct{}{}:
	default:
	}
	if !let {
		e.conn.Close()
		return
	}
	a.admit(e.conn, &h, e.number)
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

func (a *acceptor) why(err error) string {
	var r *refusal
	var timeout net.Error
	switch {
	case errors.As(err, &r):
		return r.reason
	case errors.Is(err, wire.ErrMagic):
		return "it does not speak gotrain's protocol"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no handshake within %v", a.limit)
	case errors.Is(err, net.ErrClosed):
		return "too many connections without a handshake"
	case errors.Is(err, errSilent):
		return errSilent.Error()
	}
	return "it broke off the handshake"
}

// close ends listening and every handshake, and waits for them.
func (a *acceptor) close() {
	a.mu.Lock()
	a.closed = true
	for _, e := range a.pending {
		e.conn.Close()
	}
	a.mu.Unlock()
	a.listener.Close()
	select {
	case a.free <- struct{}{}:
	default:
	}
	a.wg.Wait()
}

// throttle logs at most one sentence per interval, and how many it left out.
type throttle struct {
	every time.Duration
	tell  func(string)

	mu   sync.Mutex
	last time.Time
	left int
}

func (r *throttle) say(sentence func() string) {
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
