package meet

import (
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// reported handles what a rank says about a failure.
func (c *coordinator) reported(by int, f *wire.Fault, now time.Time) {
	switch {
	case f.Own:
		c.cause.gaveUp(by, f.Reason)
	case f.Rank < 0 || f.Rank >= len(c.peers) || f.Rank == by:
		return
	case c.peers[f.Rank] != nil && c.peers[f.Rank].left:
		c.digest(now) // it says so
		return
	default:
		if len(c.cause.pending) == 0 {
			time.AfterFunc(decide+time.Millisecond, c.due)
		}
		c.cause.reported(by, f.Rank, f.Reason, now)
	}
	c.announce()
}

func (c *coordinator) due() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause.due(time.Now())
	c.announce()
}

// lost handles the end of a rank's connection.
func (c *coordinator) lost(p *peer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.gone = true
	c.informed[p.join.Rank] = true
	c.watchdog.rest(p.join.Rank)
	if !p.left && !c.ended && c.problem == nil {
		reason := ended(err, deadAfter*c.beat, p.join.Network != c.cfg.network)
		if !c.started {
			reason = "before all ranks had come, " + reason
		}
		c.cause.ended(p.join.Rank, reason)
		c.announce()
	}
	c.settle()
}

// announce tells everybody the first cause, once.
func (c *coordinator) announce() {
	f := c.cause.first
	if f == nil || c.announced {
		return
	}
	c.announced = true
	payload := c.fault(f)
	for _, p := range c.peers {
		if p != nil && !p.gone {
			p.control.send(wire.KindFault, payload)
			c.informed[p.join.Rank] = true
		}
	}
	c.settle()
}

func (c *coordinator) fault(f *Fault) []byte {
	out := wire.Fault{Rank: f.Rank, Reason: f.Reason}
	if p := c.peers[f.Rank]; p != nil {
		out.Host = p.join.Host
	}
	return out.Append(nil)
}
