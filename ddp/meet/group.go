package meet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// Group is this rank's connection to the other ranks of the job. Its methods are safe for concurrent use.
type Group struct {
	cfg         *Config
	token       []byte
	coordinator *coordinator // rank 0
	chosen      string       // why data connections use this address
	data        *backlog
	control     *controlConn
	wg          sync.WaitGroup // reader and pulse
	calls       atomic.Int64
	beats       atomic.Uint64
	kick        chan struct{} // a beat is due at once

	ready chan struct{} // closed when the roster is here
	down  chan struct{} // closed when the job has failed
	bye   chan struct{} // closed when the control connection has ended
	stop  chan struct{} // closed by Close

	mu       sync.Mutex
	roster   *Roster
	beat     time.Duration
	silence  bool // it is a failure
	err      error
	over     bool   // rank 0 has left in order
	sentence string // what the coordinator waits for
	seq      uint64
	waits    map[uint64]chan *wire.Gathered
	counts   map[string]int // of exchanges, by key
	pulses   []wire.Pulse
	at       time.Time // when they came
	changed  chan struct{}
	works    []*work
	closing  sync.Once
	closed   bool
}

func newGroup(cfg *Config) *Group {
	return &Group{cfg: cfg, beat: cfg.every(), silence: cfg.Heartbeat >= 0, kick: make(chan struct{}, 1), ready: make(chan struct{}), down: make(chan struct{}),
		bye: make(chan struct{}), stop: make(chan struct{}), changed: make(chan struct{}), waits: map[uint64]chan *wire.Gathered{}, counts: map[string]int{}}
}

// Rank returns the rank of this process.
func (g *Group) Rank() int { return g.cfg.Rank }

// Roster returns the ranks of the job.
func (g *Group) Roster() *Roster { return g.roster }

// Address says where this rank takes data connections, and why there: "10.0.0.2:41823 (eth1, by the route to rank 0)".
func (g *Group) Address() string {
	return fmt.Sprintf("%v (%s)", g.roster.Members[g.cfg.Rank].Addr, g.chosen)
}

// Down is closed when the job has failed.
func (g *Group) Down() <-chan struct{} { return g.down }

// Err returns the first cause as *Fault, or nil as long as there is none.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail ends the job on this rank.
func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && !g.over && !g.closed {
		g.err = err
		close(g.down)
	}
}

// read takes what the coordinator sends until the connection ends.
func (g *Group) read() {
	defer close(g.bye)
	for {
		k, payload, err := g.control.receive()
		if err == nil {
			err = g.heard(k, payload)
		}
		switch {
		case err == errBye:
			g.control.close()
			return
		case err != nil:
			g.fail(&Fault{0, g.host0(), ended(err, deadAfter*g.beat, far(g.control.conn))}) // a first cause that came before stays
			g.control.close()
			return
		}
	}
}

var errBye = errors.New("bye")

// host0 is the host of rank 0, as far as it is known.
func (g *Group) host0() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.roster != nil {
		return g.roster.Members[0].Host
	}
	return ""
}

// heard handles a frame of the coordinator.
func (g *Group) heard(k wire.Kind, payload []byte) error {
	switch k {
	case wire.KindRoster:
		return g.begin(payload)
	case wire.KindRefuse:
		r, err := wire.ParseGathered(payload)
		if err != nil {
			return err
		}
		text, hint := textAndHint(r.Problem)
		if len(r.Missing) == 0 {
			g.fail(&RefusedError{text, hint})
		} else {
			g.fail(&LateError{"start", g.cfg.Timeouts.Start, r.Missing, text, "look for the first error of those ranks"})
		}
		g.wind()
	case wire.KindWaiting:
		s := wire.Text(string(payload), wire.MaxReason)
		g.mu.Lock()
		g.sentence = s
		g.mu.Unlock()
		g.cfg.Waiting(s)
	case wire.KindDigest:
		list, err := wire.ParseDigest(payload, g.pulses) // which only this goroutine changes
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.pulses, g.at = list, time.Now()
		close(g.changed)
		g.changed = make(chan struct{})
		g.mu.Unlock()
	case wire.KindGathered:
		a, err := wire.ParseGathered(payload)
		if err != nil {
			return err
		}
		g.mu.Lock()
		c := g.waits[a.Seq]
		delete(g.waits, a.Seq)
		g.mu.Unlock()
		if c != nil {
			c <- &a // it has room
		}
	case wire.KindFault:
		f, err := wire.ParseFault(payload)
		if err != nil {
			return err
		}
		g.fail(&Fault{f.Rank, f.Host, f.Reason})
		g.wind()
	case wire.KindBye:
		g.mu.Lock()
		g.over = true
		g.mu.Unlock()
		return errBye
	default:
		return fmt.Errorf("meet: frame of kind %d", k)
	}
	return nil
}

// wind ends sending after a failure, so that the coordinator knows that its word has come.
func (g *Group) wind() { g.control.flush(0) }

// begin takes the roster.
func (g *Group) begin(payload []byte) error {
	r, err := wire.ParseRoster(payload)
	if err != nil {
		return err
	}
	if len(r.Members) != g.cfg.World || r.Beat == 0 {
		return wire.ErrMalformed
	}
	nonce := strings.Map(func(c rune) rune { // it becomes a part of names of files
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, r.Nonce)
	list := make([]Member, len(r.Members))
	for i, m := range r.Members {
		list[i] = Member(m)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.roster != nil {
		return wire.ErrMalformed
	}
	g.roster = &Roster{Job: g.cfg.Job, Generation: g.cfg.Generation, Nonce: nonce, Members: list}
	beat := time.Duration(r.Beat) * time.Microsecond
	g.silence = beat > 0
	g.beat = max(beat, -beat)
	close(g.ready)
	return nil
}

func (g *Group) waiting() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sentence == "" {
		return "waiting for other ranks"
	}
	return g.sentence
}

// Report tells that the connection to a rank broke, and returns the first cause of the job's failure, within half a second. If there is no word from the
// coordinator by then, the report itself is the cause. The error says so if the rank has left in order.
func (g *Group) Report(rank int, reason string) error {
	if rank < 0 || rank >= g.cfg.World {
		return fmt.Errorf("meet: there is no rank %d to report (%s)", rank, reason)
	}
	g.mu.Lock()
	if g.err == nil && !g.over {
		g.control.send(wire.KindReport, (&wire.Fault{Rank: rank, Reason: reason}).Append(nil))
	}
	g.mu.Unlock()
	t := time.NewTimer(patient)
	defer t.Stop()
	own := &Fault{Rank: rank, Host: g.roster.Members[rank].Host, Reason: reason}
	for {
		g.mu.Lock()
		changed, over := g.changed, g.over
		left := over || rank < len(g.pulses) && g.pulses[rank].Left
		g.mu.Unlock()
		select {
		case <-g.down:
			return g.Err()
		default:
		}
		if left {
			own.Reason = "it has left the job in order (" + reason + ")"
			return own
		}
		select {
		case <-g.down:
		case <-changed:
		case <-g.bye:
			if err := g.Err(); err != nil {
				return err
			}
			return own
		case <-t.C:
			return own
		}
	}
}

// Abort ends the job on all ranks. If the reason blames another rank, as errors with a method Blames do, that one counts as the cause unless it says itself
// what happened.
func (g *Group) Abort(reason error) {
	f := wire.Fault{Rank: g.cfg.Rank, Reason: reason.Error(), Own: true}
	var blame interface{ Blames() []int }
	if errors.As(reason, &blame) {
		for _, r := range blame.Blames() {
			if r != g.cfg.Rank {
				f.Rank, f.Own = r, false
				break
			}
		}
	}
	g.mu.Lock()
	idle := g.err != nil || g.over || g.closed
	if !idle {
		g.control.send(wire.KindReport, f.Append(nil))
	}
	g.mu.Unlock()
	if idle {
		return
	}
	t := time.NewTimer(patient)
	defer t.Stop()
	select { // the process may end after this, and with it rank 0's coordinator
	case <-g.down:
	case <-g.bye:
	case <-t.C:
		g.fail(&Fault{f.Rank, g.roster.Members[f.Rank].Host, f.Reason})
	}
}

// Close leaves the job in order: connections that end from now on are no failure of this rank. Rank 0 waits until the others have left, up to Timeouts.End;
// then they go on without a coordinator. After a failure Close waits for nobody. Idempotent.
func (g *Group) Close() error {
	g.closing.Do(func() {
		g.mu.Lock()
		ok := g.err == nil && !g.over
		if ok {
			g.control.send(wire.KindLeave, nil)
		}
		g.mu.Unlock()
		if ok && g.coordinator == nil {
			t := time.NewTimer(g.cfg.Timeouts.Handshake)
			select {
			case <-g.bye:
			case <-g.down:
			case <-t.C:
			}
			t.Stop()
		}
		g.quit()
	})
	return nil
}

// quit ends everything that this rank has begun.
func (g *Group) quit() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	if g.coordinator != nil {
		if stayed := g.coordinator.end(); len(stayed) > 0 {
			g.cfg.Warn(fmt.Sprintf("rank 0 leaves the job after waiting %v for %s, which have not left", g.cfg.Timeouts.End, g.roster.Names(stayed)))
		}
	}
	if g.data != nil {
		g.data.close()
	}
	if g.control != nil {
		g.control.flush(time.Second)
		g.control.conn.Close()
	}
	close(g.stop)
	g.wg.Wait()
}

// limit returns how long a phase may take.
func limit(ctx context.Context, phase time.Duration) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return min(phase, max(0, time.Until(d)))
	}
	return phase
}
