package meet

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// hall is where the ranks meet: the coordinator, in the process of rank 0. Every rank has a seat in it, and a line to it; rank 0's is a pipe.
type hall struct {
	cfg  *Config
	beat time.Duration // between digests
	gate *gate
	say  func(string) // to rank 0's user

	mu       sync.Mutex
	seats    []*seat // by rank; nil: has not come
	begun    time.Time
	started  bool           // the roster is out
	problem  *wire.Gathered // why the job cannot start
	cause    cause
	told     bool // the first cause is out
	vigil    *vigil
	gathers  map[string]*gathering
	ended    bool
	informed []bool        // ranks that know why the job does not start
	empty    chan struct{} // closed when rank 0 need not wait for anybody
	members  []wire.Member

	stop chan struct{}
	wg   sync.WaitGroup
}

// seat is the coordinator's side of a rank.
type seat struct {
	join wire.Join
	line *line
	zero netip.Addr // rank 0's address in the view of this rank
	beat wire.Beat
	left bool // in order
	gone bool // its line ended
}

func newHall(cfg *Config, beat time.Duration, listener *net.TCPListener, token []byte) *hall {
	now := time.Now()
	h := &hall{cfg: cfg, beat: beat, say: cfg.Waiting, seats: make([]*seat, cfg.World), begun: now, vigil: newVigil(beat, cfg.World, now),
		gathers: map[string]*gathering{}, informed: make([]bool, cfg.World), empty: make(chan struct{}), stop: make(chan struct{})}
	h.vigil.limit = max(h.vigil.limit, unmet)
	h.gate = &gate{listener: listener, limit: cfg.Timeouts.Handshake, refused: &rare{every: tell, tell: cfg.Warn}, admit: h.admit,
		door: door{job: wire.JobName(cfg.Job), generation: cfg.Generation, token: token, judge: h.judge}}
	h.gate.open()
	h.wg.Go(h.watch)
	return h
}

// judge decides on a process that knows the token.
func (h *hall) judge(c *wire.Hello) (wire.Verdict, string) {
	switch {
	case c.Kind != wire.Control || c.To != 0:
		return wire.WrongServer, fmt.Sprintf("rank %d called rank %d for data, but here is the coordinator", c.Rank, c.To)
	case int64(c.World) != int64(h.cfg.World):
		return wire.WrongWorld, fmt.Sprintf("rank %d is one of %d ranks, this job has %d", c.Rank, c.World, h.cfg.World)
	case int64(c.Rank) >= int64(h.cfg.World):
		return wire.WrongRank, fmt.Sprintf("there is no rank %d among %d ranks", c.Rank, h.cfg.World)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.seats[c.Rank]; s != nil && h.started { // before the start, the ranks say who they are, so that both can be named
		return wire.WrongRank, fmt.Sprintf("rank %d is taken by host %s (process %d): the job runs since %v", c.Rank, s.join.Host, s.join.PID,
			time.Since(h.begun).Round(time.Second))
	}
	return wire.Accepted, ""
}

// admit takes a connection that is proved.
func (h *hall) admit(conn *net.TCPConn, c *wire.Hello, _ uint64) {
	if err := keep(conn, deadAfter*h.beat, !conn.RemoteAddr().(*net.TCPAddr).IP.IsLoopback()); err != nil {
		conn.Close()
		return
	}
	h.sit(conn, int(c.Rank), conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
}

// sit serves a rank's connection from now on.
func (h *hall) sit(conn net.Conn, rank int, zero netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		conn.Close()
		return
	}
	l := newLine(conn)
	h.wg.Go(func() { h.serve(l, rank, zero) })
}

// serve reads what a rank sends until its line ends.
func (h *hall) serve(l *line, rank int, zero netip.Addr) {
	defer l.close()
	l.conn.SetReadDeadline(time.Now().Add(h.cfg.Timeouts.Handshake))
	k, payload, err := l.receive()
	if err != nil || k != wire.KindJoin {
		return // it tried several addresses of rank 0 at a time, and took another
	}
	l.conn.SetReadDeadline(time.Time{})
	j, err := wire.ParseJoin(payload)
	if err != nil || j.Rank != rank {
		return
	}
	s := h.come(&seat{join: j, line: l, zero: zero})
	if s == nil {
		l.flush(time.Second)
		drain(l, time.Second)
		return
	}
	for {
		k, payload, err := l.receive()
		if err == nil {
			err = h.heard(s, k, payload)
		}
		if err != nil {
			h.lost(s, err)
			return
		}
	}
}

// drain lets the rank read the last words.
func drain(l *line, limit time.Duration) {
	l.conn.SetReadDeadline(time.Now().Add(limit))
	for range 100 {
		if _, _, err := l.receive(); err != nil {
			return
		}
	}
}

// come seats a rank. It returns nil if the rank cannot take part; then it has been told why.
func (h *hall) come(s *seat) *seat {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := s.join.Rank
	switch old := h.seats[r]; {
	case h.problem != nil:
		s.line.send(wire.KindRefuse, h.problem.Append(nil))
		h.inform(r)
		return nil
	case h.cause.first != nil:
		s.line.send(wire.KindFault, h.fault(h.cause.first))
		h.inform(r)
		return nil
	case old != nil:
		g := wire.Gathered{Problem: fmt.Sprintf("two rank %d: host %s (process %d) and host %s (process %d)\n"+
			"give each process its own rank (RANK, --node_rank), and each job its own port or job id (GOTRAIN_JOB_ID)",
			r, old.join.Host, old.join.PID, s.join.Host, s.join.PID)}
		s.line.send(wire.KindRefuse, g.Append(nil))
		if !h.started {
			h.fail(&g)
		}
		return nil
	}
	h.seats[r] = s
	h.vigil.heard(r, time.Now())
	if h.complete() {
		h.start()
	}
	return s
}

func (h *hall) complete() bool {
	for _, s := range h.seats {
		if s == nil {
			return false
		}
	}
	return true
}

// start sends everybody the roster.
func (h *hall) start() {
	joins := make([]wire.Join, len(h.seats))
	for r, s := range h.seats {
		joins[r] = s.join
	}
	members, problem, hint := arrange(joins)
	if problem != "" {
		h.fail(&wire.Gathered{Problem: problem + "\n" + hint})
		return
	}
	h.members, h.started, h.begun = members, true, time.Now()
	zero := h.seats[0].zero
	for r, s := range h.seats { // rank 0 prints the address that other hosts use
		if r > 0 && joins[r].Network != joins[0].Network {
			zero = s.zero
			break
		}
	}
	h.vigil.limit = deadAfter * h.beat
	beat := h.beat.Microseconds()
	if h.cfg.Heartbeat < 0 {
		beat = -beat
	}
	for r, s := range h.seats {
		h.vigil.heard(r, h.begun)
		z := s.zero
		if r == 0 {
			z = zero
		}
		s.line.send(wire.KindRoster, (&wire.Roster{Beat: beat, Members: seenFrom(z, joins, members)}).Append(nil))
	}
}

// heard handles a frame of a rank.
func (h *hall) heard(s *seat, k wire.Kind, payload []byte) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, now := s.join.Rank, time.Now()
	if !s.left {
		h.vigil.heard(r, now)
	}
	switch k {
	case wire.KindBeat:
		s.beat, err = wire.ParseBeat(payload)
	case wire.KindGather:
		var g wire.Gather
		if g, err = wire.ParseGather(payload); err == nil {
			h.gather(s, &g, now)
		}
	case wire.KindReport:
		var f wire.Fault
		if f, err = wire.ParseFault(payload); err == nil {
			h.reported(r, &f, now)
		}
	case wire.KindLeave:
		s.left = true
		h.vigil.rest(r)
		h.cause.left(r)
		if r != 0 { // rank 0 waits for the others
			s.line.send(wire.KindBye, nil)
		}
		h.digest(now)
		h.farewell()
	default:
		err = fmt.Errorf("frame of kind %d", k)
	}
	return err
}
