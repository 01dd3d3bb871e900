package meet

import (
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

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
