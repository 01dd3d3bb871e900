package meet

import (
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// inform notes that a rank knows why the job does not start.
func (h *hall) inform(rank int) {
	h.informed[rank] = true
	h.farewell()
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
