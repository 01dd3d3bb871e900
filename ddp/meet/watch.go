package meet

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

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
			if now.Sub(said) >= h.cfg.tell {
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
