package meet

import (
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// digest sends everybody how everybody is: what changed, to those that have had the digest before, and all to the others. mu is held.
func (c *coordinator) digest(now time.Time) {
	list := make([]wire.Pulse, len(c.peers))
	for r, p := range c.peers {
		if p == nil {
			continue
		}
		list[r] = wire.Pulse{Beat: p.beat, Left: p.left}
		if silent := c.watchdog.silent(r, now); silent > missed*c.beat {
			list[r].Silent = uint64(silent.Milliseconds())
		}
	}
	changes := wire.AppendDigest(nil, c.told, list)
	whole := sync.OnceValue(func() []byte { return wire.AppendDigest(nil, nil, list) })
	for _, p := range c.peers {
		if p != nil && !p.gone {
			if !p.told {
				p.told = true
				p.control.sendLatest(wire.KindDigest, whole())
			} else {
				p.control.sendNext(wire.KindDigest, changes, whole)
			}
		}
	}
	c.told = list
}

// watch sends digests, looks for silent ranks and says who is missing.
func (c *coordinator) watch() {
	tick := time.NewTicker(c.beat / 2)
	defer tick.Stop()
	said := time.Now()
	for n := 0; ; n++ {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		now := time.Now()
		if silent := c.watchdog.look(now); len(silent) > 0 && c.cfg.Heartbeat >= 0 && c.problem == nil {
			reason := fmt.Sprintf("no sign of life for %v", c.watchdog.limit)
			if len(silent) > 1 { // the fault itself names one rank and its host
				reason += " from " + c.names(silent)
			}
			c.cause.ended(silent[0], reason)
			c.announce()
		}
		if n%2 == 1 {
			c.digest(now)
		}
		sentence := ""
		if !c.started && c.problem == nil && c.cause.first == nil {
			if now.Sub(said) >= c.cfg.tell {
				said, sentence = now, c.missing()
				for _, p := range c.peers {
					if p != nil && p.join.Rank != 0 {
						p.control.send(wire.KindWaiting, []byte(sentence))
					}
				}
			}
			if now.Sub(c.begun) >= c.cfg.Timeouts.Start {
				c.late()
			}
		}
		c.mu.Unlock()
		if sentence != "" {
			c.say(sentence)
		}
	}
}

// late ends a start that took too long.
func (c *coordinator) late() {
	g := &wire.Gathered{Problem: c.missing()}
	for r, p := range c.peers {
		if p == nil {
			g.Missing = append(g.Missing, r)
		}
	}
	c.fail(g)
}

// missing says who has not come: "waiting for ranks 4–7 of host n2; 12 of 16 have joined".
func (c *coordinator) missing() string {
	var list []int
	for r, p := range c.peers {
		if p == nil {
			list = append(list, r)
		}
	}
	return fmt.Sprintf("waiting for %s; %d of %d have joined", byHost(list, c.placeOf), len(c.peers)-len(list), len(c.peers))
}

// placeOf says where a rank that has not come should be: on the host of ranks of the same node that have come, as far as numbers tell.
func (c *coordinator) placeOf(rank int) string {
	per := c.cfg.LocalWorld
	if per <= 0 || per >= c.cfg.World {
		return ""
	}
	node := rank / per
	for r := node * per; r < min((node+1)*per, len(c.peers)); r++ {
		if p := c.peers[r]; p != nil {
			return "host " + p.join.Host
		}
	}
	return fmt.Sprintf("node %d", node)
}

// names returns ranks with their hosts.
func (c *coordinator) names(ranks []int) string {
	return byHost(ranks, func(r int) string {
		if c.peers[r] == nil {
			return ""
		}
		return "host " + c.peers[r].join.Host
	})
}
