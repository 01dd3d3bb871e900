package meet

import (
	"fmt"
	"time"
)

// cause decides which rank failed first, and why. It is pure: the coordinator tells it what happened, and when.
//
// A rank that gives up says so itself, and one whose process ended is known by its connection; both are decided at once. A broken data connection is only a
// symptom: the rank at its other end may be about to say why, or its process may just have ended. So reports about others wait for a while.
type cause struct {
	pending []report // in the order of arrival
	first   *Fault   // decided; Host is not filled in
}

type report struct {
	by, rank int
	reason   string
	at       time.Time
}

// reported notes that one rank holds another for failed.
func (c *cause) reported(by, rank int, reason string, now time.Time) {
	if c.first == nil {
		c.pending = append(c.pending, report{by, rank, reason, now})
	}
}

// gaveUp decides for a rank that gives up with a reason of its own, unless it had reported another one: then that is why.
func (c *cause) gaveUp(rank int, reason string) { c.decide(rank, reason) }

// ended decides for a rank whose process ended, or from which nothing is heard.
func (c *cause) ended(rank int, reason string) { c.decide(rank, reason) }

func (c *cause) decide(rank int, reason string) {
	if c.first != nil {
		return
	}
	for _, p := range c.pending {
		if p.by == rank {
			c.first = p.fault()
			return
		}
	}
	c.first = &Fault{Rank: rank, Reason: reason}
}

// left forgets reports about a rank that has left in order: connections to it ended, as they should.
func (c *cause) left(rank int) {
	keep := c.pending[:0]
	for _, p := range c.pending {
		if p.rank != rank {
			keep = append(keep, p)
		}
	}
	c.pending = keep
}

// due decides by the reports once the first of them has waited long enough: for the rank that most ranks report, and of equal ones for the one that was
// reported first.
func (c *cause) due(now time.Time) {
	if c.first != nil || len(c.pending) == 0 || now.Sub(c.pending[0].at) < decide {
		return
	}
	by := map[int]map[int]bool{}
	best := c.pending[0]
	for _, p := range c.pending {
		if by[p.rank] == nil {
			by[p.rank] = map[int]bool{}
		}
		by[p.rank][p.by] = true
	}
	for _, p := range c.pending {
		if len(by[p.rank]) > len(by[best.rank]) {
			best = p
		}
	}
	c.first = best.fault()
}

func (p *report) fault() *Fault {
	return &Fault{Rank: p.rank, Reason: fmt.Sprintf("rank %d reports: %s", p.by, p.reason)}
}
