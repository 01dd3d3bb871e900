package meet

import (
	"fmt"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// gathering is an exchange in progress at the coordinator.
type gathering struct {
	ranks   []int
	what    string // of the first rank that came
	by      int
	came    []*wire.Gather // by index in ranks
	problem string         // it has failed, which is kept for the ranks that still come
	timers  []*time.Timer
}

func (g *gathering) stop() {
	for _, t := range g.timers {
		t.Stop()
	}
}

// gather takes a rank's contribution; the last one answers all.
func (c *coordinator) gather(p *peer, m *wire.Gather, now time.Time) {
	answer := func(a *wire.Gathered) {
		a.Seq = m.Seq
		p.control.send(wire.KindGathered, a.Append(nil))
	}
	r := p.join.Rank
	at := slices.Index(m.Ranks, r)
	if at < 0 || slices.ContainsFunc(m.Ranks, func(r int) bool { return r < 0 || r >= len(c.peers) }) {
		answer(&wire.Gathered{Problem: fmt.Sprintf("%s: %v are not ranks with rank %d among them", m.What, m.Ranks, r)})
		return
	}
	key := fmt.Sprint(m.Ranks, m.Key)
	g := c.gathers[key]
	if g == nil {
		g = &gathering{ranks: m.Ranks, what: m.What, by: r, came: make([]*wire.Gather, len(m.Ranks))}
		c.gathers[key] = g
	}
	if g.came[at] != nil {
		answer(&wire.Gathered{Problem: fmt.Sprintf("%s: rank %d came twice", m.What, r)})
		return
	}
	g.came[at] = m
	last := !slices.Contains(g.came, nil)
	if last {
		delete(c.gathers, key)
	}
	switch {
	case g.problem != "":
		answer(&wire.Gathered{Problem: g.problem})
	case m.What != g.what:
		c.answer(g, &wire.Gathered{Problem: fmt.Sprintf("rank %d exchanges %q, rank %d %q", g.by, g.what, r, m.What)})
	case !last:
		limit := min(time.Duration(m.Limit)*time.Millisecond, 24*time.Hour)
		g.timers = append(g.timers, time.AfterFunc(limit, func() { c.lateGather(key, g) }))
	default:
		all := &wire.Gathered{}
		for _, part := range g.came {
			all.All = append(all.All, part.Mine)
		}
		c.answer(g, all)
	}
}

// answer answers all that have come.
func (c *coordinator) answer(g *gathering, a *wire.Gathered) {
	g.stop()
	g.problem = a.Problem
	for i, part := range g.came {
		if p := c.peers[g.ranks[i]]; part != nil && !p.gone {
			a.Seq = part.Seq
			p.control.send(wire.KindGathered, a.Append(nil))
		}
	}
}

// lateGather ends an exchange at the deadline of one of its ranks.
func (c *coordinator) lateGather(key string, g *gathering) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gathers[key] != g || g.problem != "" || c.ended {
		return
	}
	a := &wire.Gathered{}
	var came []int
	for i, part := range g.came {
		if part == nil {
			a.Missing = append(a.Missing, g.ranks[i])
		} else {
			came = append(came, g.ranks[i])
		}
	}
	c.answer(g, a)
	g.problem = fmt.Sprintf("%s: too late: %s gave up waiting for %s", g.what, c.names(came), c.names(a.Missing))
}
