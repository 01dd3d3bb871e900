package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/meet"
)

// localLink is what groups of NewLocal take for granted: a measurement would be one of this process alone.
var localLink = link.Link{Latency: 10 * time.Microsecond, Bandwidth: 2e9, PerPeer: 3 * time.Microsecond, Reduce: link.DefaultReduce}

// NewLocal makes a group of n ranks in this process, over loopback. Element r is rank r. change, which may be nil, changes the configuration of a rank.
// A failure of a rank, or a second group, behaves as between processes.
func NewLocal(n int, change func(rank int, cfg *Config)) ([]comm.Communicator, error) {
	return newLocal(n, "127.0.0.1:0", change)
}

func newLocal(n int, addr string, change func(rank int, cfg *Config)) ([]comm.Communicator, error) {
	if n < 1 {
		return nil, fmt.Errorf("comm: tcp: a group of %d ranks", n)
	}
	h, err := newHub(n, addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, errs := make([]comm.Communicator, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := Config{Control: &seat{h: h, rank: r}, Link: &localLink}
		if change != nil {
			change(r, &cfg)
		}
		wg.Go(func() {
			c, err := Open(ctx, cfg)
			if err != nil {
				errs[r] = err
				h.fail(&meet.Fault{Rank: r, Reason: err.Error()}) // so that the others do not wait
				return
			}
			c.goodbye = func() { h.leave(r) }
			group[r] = c
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for r, c := range group {
			if c != nil {
				c.Close()
			} else {
				h.leave(r)
			}
		}
		return nil, err
	}
	return group, nil
}

// hub is the rendezvous of ranks in one process.
type hub struct {
	roster meet.Roster
	listen []net.Listener
	down   chan struct{}

	mu    sync.Mutex
	fault *meet.Fault
	life  []meet.Life
	since []time.Time
	open  int
	await map[[3]uint32]chan *net.TCPConn // by stream, the lower and the higher rank
}

func newHub(n int, addr string) (*hub, error) {
	h := &hub{down: make(chan struct{}), life: make([]meet.Life, n), since: make([]time.Time, n), open: n, await: map[[3]uint32]chan *net.TCPConn{}}
	for r := range n {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			for _, l := range h.listen {
				l.Close()
			}
			return nil, fmt.Errorf("comm: tcp: %w", err)
		}
		h.listen = append(h.listen, l)
		at, _ := netip.ParseAddrPort(l.Addr().String())
		h.since[r] = time.Now()
		h.roster.Members = append(h.roster.Members, meet.Member{Rank: r, LocalRank: r, Host: "localhost", Machine: "here", Addr: at, PID: os.Getpid()})
		go h.serve(r, l)
	}
	return h, nil
}

// mailbox is where the connection of a pair arrives.
func (h *hub) mailbox(stream uint32, low, high int) chan *net.TCPConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [3]uint32{stream, uint32(low), uint32(high)}
	if h.await[key] == nil {
		h.await[key] = make(chan *net.TCPConn, 1)
	}
	return h.await[key]
}

// serve accepts connections of higher ranks. The listener's end ends it.
func (h *hub) serve(rank int, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		var hello [8]byte // of a rank of this process: its number and the stream, which come at once
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadFull(conn, hello[:]); err != nil {
			conn.Close()
			continue
		}
		le := binary.LittleEndian
		h.mailbox(le.Uint32(hello[4:]), rank, int(le.Uint32(hello[:]))) <- conn.(*net.TCPConn)
	}
}

func (h *hub) fail(f *meet.Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == nil {
		h.fault = f
		close(h.down)
	}
}

func (h *hub) leave(rank int) {
	h.listen[rank].Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.life[rank].Left = true
}

// seat is a rank's place at the hub.
type seat struct {
	h    *hub
	rank int
}

var _ Control = (*seat)(nil)

func (s *seat) Rank() int             { return s.rank }
func (s *seat) Roster() *meet.Roster  { return &s.h.roster }
func (s *seat) Down() <-chan struct{} { return s.h.down }

func (s *seat) Err() error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.fault == nil {
		return nil
	}
	return s.h.fault
}

func (s *seat) Report(rank int, reason string) error {
	s.h.fail(&meet.Fault{Rank: rank, Host: s.h.roster.Members[rank].Host, Reason: reason})
	return s.Err()
}

func (s *seat) Abort(reason error) {
	s.h.fail(&meet.Fault{Rank: s.rank, Host: s.h.roster.Members[s.rank].Host, Reason: reason.Error()})
}

func (s *seat) Connect(ctx context.Context, stream uint32, ranks []int) ([]*net.TCPConn, error) {
	conns := make([]*net.TCPConn, len(ranks))
	for i, r := range ranks { // the higher rank dials
		if r >= s.rank {
			continue
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", s.h.roster.Members[r].Addr.String())
		if err != nil {
			return conns, err
		}
		hello := binary.LittleEndian.AppendUint32(nil, uint32(s.rank))
		if _, err := conn.Write(binary.LittleEndian.AppendUint32(hello, stream)); err != nil {
			return conns, err
		}
		conns[i] = conn.(*net.TCPConn)
	}
	for i, r := range ranks {
		if r <= s.rank {
			continue
		}
		select {
		case conns[i] = <-s.h.mailbox(stream, s.rank, r):
		case <-s.h.down:
			return conns, s.Err()
		case <-ctx.Done():
			return conns, fmt.Errorf("comm: tcp: rank %d waits for rank %d: %w", s.rank, r, context.Cause(ctx))
		}
	}
	return conns, nil
}

// alive counts a sign of life.
func (s *seat) alive(change func(l *meet.Life)) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	change(&s.h.life[s.rank])
	s.h.since[s.rank] = time.Now()
}

func (s *seat) Progress(calls int64) { s.alive(func(l *meet.Life) { l.Calls = calls }) }

func (s *seat) Work(what string) (beat func(), end func()) {
	s.alive(func(l *meet.Life) { l.Work, l.Beats = what, l.Beats+1 })
	beat = func() { s.alive(func(l *meet.Life) { l.Beats++ }) }
	end = func() {
		s.alive(func(l *meet.Life) {
			if l.Beats++; l.Work == what {
				l.Work = ""
			}
		})
	}
	return beat, end
}

func (s *seat) Life(rank int) meet.Life {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	l := s.h.life[rank]
	l.Silent = time.Since(s.h.since[rank])
	return l
}
