package meet

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// coordinator runs in the process of rank 0. Every rank has a control connection to it; rank 0's own is a pipe.
type coordinator struct {
	cfg      *Config
	beat     time.Duration // between digests
	acceptor *acceptor
	say      func(string) // to rank 0's user

	mu        sync.Mutex
	peers     []*peer // by rank; nil: has not come
	begun     time.Time
	started   bool           // the roster is out
	problem   *wire.Gathered // why the job cannot start
	cause     cause
	announced bool // the first cause is out
	watchdog  *watchdog
	gathers   map[string]*gathering
	ended     bool
	informed  []bool        // ranks that know why the job does not start
	empty     chan struct{} // closed when rank 0 need not wait for anybody
	members   []wire.Member
	told      []wire.Pulse // the digest before

	stop chan struct{}
	wg   sync.WaitGroup
}

// peer is what the coordinator knows of a rank.
type peer struct {
	join    wire.Join
	control *controlConn
	zero    netip.Addr // rank 0's address in the view of this rank
	beat    wire.Beat
	told    bool // it has had a digest
	left    bool // in order
	gone    bool // its connection ended
}

func newCoordinator(cfg *Config, beat time.Duration, listener *net.TCPListener, token []byte) *coordinator {
	now := time.Now()
	c := &coordinator{cfg: cfg, beat: beat, say: cfg.Waiting, peers: make([]*peer, cfg.World), begun: now, watchdog: newWatchdog(beat, cfg.World, now),
		gathers: map[string]*gathering{}, informed: make([]bool, cfg.World), empty: make(chan struct{}), stop: make(chan struct{})}
	c.watchdog.limit = max(c.watchdog.limit, unmet)
	c.acceptor = &acceptor{listener: listener, limit: cfg.Timeouts.Handshake, refused: &throttle{every: tell, tell: cfg.Warn}, admit: c.admit,
		authenticator: authenticator{job: wire.JobName(cfg.Job), generation: cfg.Generation, token: token, judge: c.judge, begun: c.hasBegun}}
	c.acceptor.open()
	c.wg.Go(c.watch)
	return c
}

// judge decides on a process that knows the token.
func (c *coordinator) judge(hello *wire.Hello) (wire.Verdict, string) {
	switch {
	case hello.Kind != wire.Control || hello.To != 0:
		return wire.WrongServer, fmt.Sprintf("rank %d called rank %d for data, but here is the coordinator", hello.Rank, hello.To)
	case int64(hello.World) != int64(c.cfg.World):
		return wire.WrongWorld, fmt.Sprintf("rank %d is one of %d ranks, this job has %d", hello.Rank, hello.World, c.cfg.World)
	case int64(hello.Rank) >= int64(c.cfg.World):
		return wire.WrongRank, fmt.Sprintf("there is no rank %d among %d ranks", hello.Rank, c.cfg.World)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peers[hello.Rank]; p != nil && c.started { // before the start, the ranks say who they are, so that both can be named
		return wire.WrongRank, fmt.Sprintf("rank %d is taken by host %s (process %d): the job runs since %v", hello.Rank, p.join.Host, p.join.PID,
			time.Since(c.begun).Round(time.Second))
	}
	return wire.Accepted, ""
}

// hasBegun reports whether this job does not wait for ranks any more.
func (c *coordinator) hasBegun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started || c.problem != nil || c.ended || c.cause.first != nil
}

// admit takes a connection that is proved.
func (c *coordinator) admit(conn *net.TCPConn, hello *wire.Hello, _ uint64) {
	if err := keep(conn, deadAfter*c.beat, !conn.RemoteAddr().(*net.TCPAddr).IP.IsLoopback()); err != nil {
		conn.Close()
		return
	}
	c.attach(conn, int(hello.Rank), conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
}

// attach serves a rank's connection from now on.
func (c *coordinator) attach(conn net.Conn, rank int, zero netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		conn.Close()
		return
	}
	l := newControlConn(conn)
	c.wg.Go(func() { c.serve(l, rank, zero) })
}

// serve reads what a rank sends until its connection ends.
func (c *coordinator) serve(l *controlConn, rank int, zero netip.Addr) {
	defer l.close()
	l.conn.SetReadDeadline(time.Now().Add(c.cfg.Timeouts.Handshake))
	k, payload, err := l.receive()
	if err != nil || k != wire.KindJoin {
		return // it tried several addresses of rank 0 at a time, and took another
	}
	l.conn.SetReadDeadline(time.Time{})
	j, err := wire.ParseJoin(payload)
	if err != nil || j.Rank != rank {
		return
	}
	p := c.register(&peer{join: j, control: l, zero: zero})
	if p == nil {
		l.flush(time.Second)
		drain(l, time.Second)
		return
	}
	for {
		k, payload, err := l.receive()
		if err == nil {
			err = c.heard(p, k, payload)
		}
		if err != nil {
			c.lost(p, err)
			return
		}
	}
}

// drain lets the rank read the last words.
func drain(l *controlConn, limit time.Duration) {
	l.conn.SetReadDeadline(time.Now().Add(limit))
	for range 100 {
		if _, _, err := l.receive(); err != nil {
			return
		}
	}
}

// register adds a rank. It returns nil if the rank cannot take part; then the rank has been told why.
func (c *coordinator) register(p *peer) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := p.join.Rank
	switch old := c.peers[r]; {
	case c.problem != nil:
		p.control.send(wire.KindRefuse, c.problem.Append(nil))
		c.inform(r)
		return nil
	case c.cause.first != nil:
		p.control.send(wire.KindFault, c.fault(c.cause.first))
		c.inform(r)
		return nil
	case old != nil:
		g := wire.Gathered{Problem: fmt.Sprintf("two rank %d: host %s (process %d) and host %s (process %d)\n"+
			"give each process its own rank (RANK, --node_rank), and each job its own port or job id (GOTRAIN_JOB_ID)",
			r, old.join.Host, old.join.PID, p.join.Host, p.join.PID)}
		p.control.send(wire.KindRefuse, g.Append(nil))
		if !c.started {
			c.fail(&g)
		}
		return nil
	}
	c.peers[r] = p
	c.watchdog.heard(r, time.Now())
	if c.complete() {
		c.start()
	}
	return p
}

func (c *coordinator) complete() bool {
	for _, p := range c.peers {
		if p == nil {
			return false
		}
	}
	return true
}

// start sends everybody the roster.
func (c *coordinator) start() {
	joins := make([]wire.Join, len(c.peers))
	for r, p := range c.peers {
		joins[r] = p.join
	}
	members, problem, hint := arrange(joins)
	if problem != "" {
		c.fail(&wire.Gathered{Problem: problem + "\n" + hint})
		return
	}
	c.members, c.started, c.begun = members, true, time.Now()
	zero := c.peers[0].zero
	for r, p := range c.peers { // rank 0 prints the address that other hosts use
		if r > 0 && joins[r].Network != joins[0].Network {
			zero = p.zero
			break
		}
	}
	c.watchdog.limit = deadAfter * c.beat
	nonce, beat := rand.Text()[:16], c.beat.Microseconds()
	if c.cfg.Heartbeat < 0 {
		beat = -beat
	}
	for r, p := range c.peers {
		c.watchdog.heard(r, c.begun)
		z := p.zero
		if r == 0 {
			z = zero
		}
		p.control.send(wire.KindRoster, (&wire.Roster{Nonce: nonce, Beat: beat, Members: seenFrom(z, joins, members)}).Append(nil))
	}
}

// heard handles a frame of a rank.
func (c *coordinator) heard(p *peer, k wire.Kind, payload []byte) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, now := p.join.Rank, time.Now()
	if !p.left {
		c.watchdog.heard(r, now)
	}
	switch k {
	case wire.KindBeat:
		p.beat, err = wire.ParseBeat(payload)
	case wire.KindGather:
		var g wire.Gather
		if g, err = wire.ParseGather(payload); err == nil {
			c.gather(p, &g, now)
		}
	case wire.KindReport:
		var f wire.Fault
		if f, err = wire.ParseFault(payload); err == nil {
			c.reported(r, &f, now)
		}
	case wire.KindLeave:
		p.left = true
		c.watchdog.rest(r)
		c.cause.left(r)
		if r != 0 { // rank 0 waits for the others
			p.control.send(wire.KindBye, nil)
		}
		c.digest(now)
		c.settle()
	default:
		err = fmt.Errorf("frame of kind %d", k)
	}
	return err
}
