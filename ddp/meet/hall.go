package meet

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
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

// inform notes that a rank knows why the job does not start.
func (h *hall) inform(rank int) {
	h.informed[rank] = true
	h.farewell()
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

// fail tells everybody that the job cannot start.
func (h *hall) fail(g *wire.Gathered) {
	h.problem = g
	for _, s := range h.seats {
		if s != nil && !s.gone {
			s.line.send(wire.KindRefuse, g.Append(nil))
			h.informed[s.join.Rank] = true
		}
	}
	h.farewell()
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

// reported handles what a rank says about a failure.
func (h *hall) reported(by int, f *wire.Fault, now time.Time) {
	switch {
	case f.Own:
		h.cause.gaveUp(by, f.Reason)
	case f.Rank < 0 || f.Rank >= len(h.seats) || f.Rank == by:
		return
	case h.seats[f.Rank] != nil && h.seats[f.Rank].left:
		h.digest(now) // it says so
		return
	default:
		if len(h.cause.pending) == 0 {
			time.AfterFunc(decide+time.Millisecond, h.due)
		}
		h.cause.reported(by, f.Rank, f.Reason, now)
	}
	h.spread()
}

func (h *hall) due() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cause.due(time.Now())
	h.spread()
}

// lost handles the end of a rank's line.
func (h *hall) lost(s *seat, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.gone = true
	h.informed[s.join.Rank] = true
	h.vigil.rest(s.join.Rank)
	if !s.left && !h.ended && h.problem == nil {
		reason := ended(err, deadAfter*h.beat)
		if !h.started {
			reason = "before all ranks had come, " + reason
		}
		h.cause.ended(s.join.Rank, reason)
		h.spread()
	}
	h.farewell()
}

// spread tells everybody the first cause, once.
func (h *hall) spread() {
	f := h.cause.first
	if f == nil || h.told {
		return
	}
	h.told = true
	payload := h.fault(f)
	for _, s := range h.seats {
		if s != nil && !s.gone {
			s.line.send(wire.KindFault, payload)
			h.informed[s.join.Rank] = true
		}
	}
	h.farewell()
}

func (h *hall) fault(f *Fault) []byte {
	out := wire.Fault{Rank: f.Rank, Reason: f.Reason}
	if s := h.seats[f.Rank]; s != nil {
		out.Host = s.join.Host
	}
	return out.Append(nil)
}

// digest sends everybody how everybody is.
func (h *hall) digest(now time.Time) {
	list := make([]wire.Pulse, len(h.seats))
	for r, s := range h.seats {
		if s != nil {
			list[r] = wire.Pulse{Beat: s.beat, Silent: uint64(h.vigil.silent(r, now).Milliseconds()), Left: s.left}
		}
	}
	payload := wire.AppendDigest(nil, list)
	for _, s := range h.seats {
		if s != nil && !s.gone {
			s.line.sendLatest(wire.KindDigest, payload)
		}
	}
}

// watch sends digests, looks for silent ranks and says who is missing.
func (h *hall) watch() {
	tick := time.NewTicker(h.beat / 2)
	defer tick.Stop()
	said := time.Now()
	for n := 0; ; n++ {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		now := time.Now()
		if silent := h.vigil.look(now); len(silent) > 0 && h.cfg.Heartbeat >= 0 && h.problem == nil {
			h.cause.ended(silent[0], fmt.Sprintf("no sign of life for %v from %s", h.vigil.limit, h.names(silent)))
			h.spread()
		}
		if n%2 == 1 {
			h.digest(now)
		}
		sentence := ""
		if !h.started && h.problem == nil && h.cause.first == nil {
			if now.Sub(said) >= tell {
				said, sentence = now, h.missing()
				for _, s := range h.seats {
					if s != nil && s.join.Rank != 0 {
						s.line.send(wire.KindWaiting, []byte(sentence))
					}
				}
			}
			if now.Sub(h.begun) >= h.cfg.Timeouts.Start {
				h.late()
			}
		}
		h.mu.Unlock()
		if sentence != "" {
			h.say(sentence)
		}
	}
}

// late ends a start that took too long.
func (h *hall) late() {
	g := &wire.Gathered{Problem: h.missing()}
	for r, s := range h.seats {
		if s == nil {
			g.Missing = append(g.Missing, r)
		}
	}
	h.fail(g)
}

// missing says who has not come: "waiting for ranks 4–7 of host n2; 12 of 16 are here".
func (h *hall) missing() string {
	var list []int
	for r, s := range h.seats {
		if s == nil {
			list = append(list, r)
		}
	}
	return fmt.Sprintf("waiting for %s; %d of %d are here", byHost(list, h.placeOf), len(h.seats)-len(list), len(h.seats))
}

// placeOf says where a rank that has not come should be: on the host of ranks of the same node that have come, as far as numbers tell.
func (h *hall) placeOf(rank int) string {
	per := h.cfg.LocalWorld
	if per <= 0 || per >= h.cfg.World {
		return ""
	}
	node := rank / per
	for r := node * per; r < min((node+1)*per, len(h.seats)); r++ {
		if s := h.seats[r]; s != nil {
			return "host " + s.join.Host
		}
	}
	return fmt.Sprintf("node %d", node)
}

// names returns ranks with their hosts.
func (h *hall) names(ranks []int) string {
	return byHost(ranks, func(r int) string {
		if h.seats[r] == nil {
			return ""
		}
		return "host " + h.seats[r].join.Host
	})
}

// farewell notes when nobody is left for whom rank 0 would have to wait: ranks that have not left, or after a failed start ranks that do not know why.
func (h *hall) farewell() {
	for r, s := range h.seats {
		switch {
		case r == 0 || h.told && h.started:
		case h.started && !s.left && !s.gone:
			return
		case !h.started && !h.informed[r]:
			return
		}
	}
	select {
	case <-h.empty:
	default:
		close(h.empty)
	}
}

// patience returns how long rank 0 waits before it ends the hall.
func (h *hall) patience() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.started && !h.told: // the others have not left
		return h.cfg.Timeouts.End
	case h.started || h.problem != nil && len(h.problem.Missing) > 0:
		return 0
	case h.problem == nil && !h.told:
		h.cause.ended(0, "it gave up before all ranks had come")
		h.spread()
	}
	return h.cfg.Timeouts.Handshake // ranks that are just coming should be told why there is no job, or they would look for it until their deadline
}

// end closes the hall. It returns the ranks that have not left.
func (h *hall) end() (stayed []int) {
	t := time.NewTimer(h.patience())
	select {
	case <-h.empty:
	case <-t.C:
	}
	t.Stop()
	h.gate.close()
	h.mu.Lock()
	h.ended = true
	var lines []*line // of ranks that have come; the others get their refusal from serve, and go
	for r, s := range h.seats {
		if s == nil || s.gone {
			continue
		}
		lines = append(lines, s.line)
		if h.started && !h.told {
			if r > 0 && !s.left {
				stayed = append(stayed, r)
			}
			s.line.send(wire.KindBye, nil)
		}
	}
	for _, g := range h.gathers {
		g.stop()
	}
	h.mu.Unlock()
	close(h.stop)
	until := time.Now().Add(time.Second)
	for _, l := range lines {
		l.flush(time.Until(until))
	}
	for _, l := range lines {
		l.conn.SetReadDeadline(until) // the other side closes first, so nothing on its way is lost
	}
	h.wg.Wait()
	return stayed
}

// textAndHint takes a problem apart.
func textAndHint(s string) (text, hint string) {
	text, hint, _ = strings.Cut(s, "\n")
	return text, hint
}
