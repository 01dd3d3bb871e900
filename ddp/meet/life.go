package meet

import (
	"slices"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// work is long work of this rank.
type work struct{ what string }

// Progress tells the other ranks how many collectives this rank has issued. It only stores the number, which the next heartbeat carries.
func (g *Group) Progress(calls int64) { g.calls.Store(calls) }

// Work tells the other ranks that this rank is at long work. beat reports progress, end that it is done.
func (g *Group) Work(what string) (beat func(), end func()) {
	w := &work{what}
	g.mu.Lock()
	g.works = append(g.works, w)
	g.mu.Unlock()
	g.beats.Add(1)
	g.hurry()
	end = sync.OnceFunc(func() {
		g.mu.Lock()
		g.works = slices.DeleteFunc(g.works, func(o *work) bool { return o == w })
		g.mu.Unlock()
		g.beats.Add(1)
		g.hurry()
	})
	return func() { g.beats.Add(1) }, end
}

// hurry sends the next heartbeat now.
func (g *Group) hurry() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// mine is the state of this rank. The work is the one that began last.
func (g *Group) mine() wire.Beat {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := wire.Beat{Calls: g.calls.Load(), Beats: g.beats.Load()}
	if n := len(g.works); n > 0 {
		b.Work = g.works[n-1].what
	}
	return b
}

// Life returns what is known of a rank.
func (g *Group) Life(rank int) Life {
	if rank == g.cfg.Rank {
		b := g.mine()
		g.mu.Lock()
		defer g.mu.Unlock()
		return Life{Calls: b.Calls, Beats: b.Beats, Work: b.Work, Left: g.closed}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if rank < 0 || rank >= len(g.pulses) {
		return Life{}
	}
	p := g.pulses[rank]
	return Life{Calls: p.Calls, Beats: p.Beats, Work: p.Work, Left: p.Left || rank == 0 && g.over,
		Silent: time.Duration(p.Silent)*time.Millisecond + time.Since(g.at)}
}

// pulse sends heartbeats, and watches those of the coordinator.
func (g *Group) pulse() {
	g.mu.Lock()
	beat := g.beat
	g.mu.Unlock()
	watch := newWatchdog(beat, 1, time.Now())
	watch.heard(0, watch.looked)
	watch.limit = max(watch.limit, unmet)
	ready := g.ready
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-g.bye:
			return
		case <-g.down:
			return
		case <-ready: // rank 0's heartbeat counts
			ready = nil
			g.mu.Lock()
			beat = g.beat
			g.mu.Unlock()
			tick.Reset(beat)
			watch = newWatchdog(beat, 1, time.Now())
			watch.heard(0, watch.looked)
			continue
		case <-g.kick:
		case <-tick.C:
		}
		b := g.mine()
		g.control.sendLatest(wire.KindBeat, b.Append(nil))
		g.mu.Lock()
		at, silence := g.at, g.silence
		g.mu.Unlock()
		if at.After(watch.last[0]) {
			watch.heard(0, at)
		}
		if late := watch.look(time.Now()); len(late) > 0 && silence {
			g.fail(&Fault{0, g.host0(), "no sign of life for " + watch.limit.String()})
			g.control.conn.Close()
			return
		}
	}
}
