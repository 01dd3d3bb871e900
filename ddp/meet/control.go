package meet

import (
	"bufio"
	"net"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// controlConn is a control connection. Sending never blocks: a goroutine writes. Of digests and beats only the latest counts, so a slow reader does not pile
// them up.
type controlConn struct {
	conn net.Conn
	in   *bufio.Reader

	mu     sync.Mutex
	queue  []byte // frames
	latest []byte // the latest frame of those that replace each other
	ending bool
	muted  bool // tests: nothing is written any more
	wake   chan struct{}
	done   chan struct{} // closed when the writer has ended
}

func newControlConn(conn net.Conn) *controlConn {
	l := &controlConn{conn: conn, in: bufio.NewReader(conn), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.write()
	return l
}

// send queues a frame.
func (l *controlConn) send(k wire.Kind, payload []byte) {
	l.mu.Lock()
	l.queue = wire.AppendFrame(l.queue, k, payload)
	l.mu.Unlock()
	l.kick()
}

// sendLatest queues a frame that replaces the last one of its kind which has not been written.
func (l *controlConn) sendLatest(k wire.Kind, payload []byte) {
	l.mu.Lock()
	l.latest = wire.AppendFrame(l.latest[:0], k, payload)
	l.mu.Unlock()
	l.kick()
}

// sendNext queues a frame that follows the last one of its kind. If that has not been written, it is replaced by one that stands alone.
func (l *controlConn) sendNext(k wire.Kind, payload []byte, whole func() []byte) {
	l.mu.Lock()
	if len(l.latest) > 0 {
		payload = whole()
	}
	l.latest = wire.AppendFrame(l.latest[:0], k, payload)
	l.mu.Unlock()
	l.kick()
}

func (l *controlConn) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *controlConn) write() {
	defer close(l.done)
	var out []byte
	for {
		l.mu.Lock()
		out = append(append(out[:0], l.queue...), l.latest...)
		l.queue, l.latest = l.queue[:0], l.latest[:0]
		ending := l.ending
		if l.muted {
			out = out[:0]
		}
		l.mu.Unlock()
		if len(out) > 0 {
			if _, err := l.conn.Write(out); err != nil {
				return // the reader meets the same end
			}
			continue
		}
		if ending {
			if t, ok := l.conn.(*net.TCPConn); ok {
				t.CloseWrite()
			} else {
				l.conn.Close() // what was written to a pipe has been read
			}
			return
		}
		<-l.wake
	}
}

// receive returns the next frame.
func (l *controlConn) receive() (wire.Kind, []byte, error) { return wire.ReadFrame(l.in) }

// flush ends sending, and waits up to limit until what was sent is written.
func (l *controlConn) flush(limit time.Duration) {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.kick()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-l.done:
	case <-t.C:
	}
}

// close ends the connection; its reader and its writer return.
func (l *controlConn) close() {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.kick()
	l.conn.Close()
	<-l.done
}
