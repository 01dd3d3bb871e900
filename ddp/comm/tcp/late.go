package tcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// vigil watches the peers that the driver waits for.
type vigil struct {
	looked time.Duration // last look
	seen   []pulse       // by rank
}

type pulse struct {
	beats uint64
	rx    uint64
	at    time.Duration // of the last sign of life
}

// standstill is a pause between two looks, which normally come every slice, above which this process itself did not run: it was suspended (Ctrl-Z),
// usually with the other ranks.
const standstill = time.Second

// watchOver begins to wait for the ranks of a call.
func (c *Comm) watchOver(k *call) {
	k.since = time.Since(c.base)
	if c.active == k || c.active == nil && c.messages == 1 {
		c.vigil.looked = k.since
	}
}

// glance looks for trouble, at most every slice or when a deadline has passed.
func (c *Comm) glance() error {
	now := time.Since(c.base)
	late := c.active != nil && c.active.ctx.Err() != nil
	if now-c.vigil.looked < slice-time.Millisecond && !late {
		return nil
	}
	c.listen(now)
	if k := c.active; k != nil {
		if err := c.trouble(k, c.lacking, now); err != nil {
			return err
		}
	}
	for _, p := range c.others {
		for _, l := range p.lanes {
			if l.first == nil {
				continue
			}
			state := l.state
			if err := c.trouble(l.first, func() (missing, stalled []*peer) {
				if state == laneMoving {
					return nil, []*peer{p}
				}
				return []*peer{p}, nil
			}, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen updates the signs of life.
func (c *Comm) listen(now time.Duration) {
	if pause := now - c.vigil.looked; pause > standstill { // not a silence of the peers
		for r := range c.vigil.seen {
			c.vigil.seen[r].at += pause
		}
		if c.active != nil {
			c.active.since += pause
		}
		for _, p := range c.others {
			for _, l := range p.lanes {
				for k := l.first; k != nil; k = k.after {
					k.since += pause
				}
			}
		}
	}
	c.vigil.looked = now
	for _, p := range c.others {
		s := &c.vigil.seen[p.rank]
		if n := c.control.Life(p.job).Beats; n != s.beats || p.rx != s.rx {
			s.beats, s.rx, s.at = n, p.rx, now
		}
	}
}

// lacking lists the peers of which nothing of the active call has come, and if there are none, those that began and owe more, or do not take what they
// should. While a rank is missing the others may be silent for its sake.
func (c *Comm) lacking() (missing, stalled []*peer) {
	for _, p := range c.others {
		switch {
		case !p.arrived:
			missing = append(missing, p)
		case p.due() != nil || p.outDone < p.outN && p.may > p.outDone:
			stalled = append(stalled, p)
		}
	}
	if missing != nil {
		stalled = nil
	}
	return missing, stalled
}

// trouble returns an error if the wait for a call cannot go on.
func (c *Comm) trouble(k *call, lacking func() (missing, stalled []*peer), now time.Duration) error {
	ended := k.ctx.Err()
	patience := comm.Patience(k.ctx)
	if ended == nil && patience == 0 {
		return nil
	}
	if ended != nil && !errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("comm: rank %d: %s: %w", c.jobs[c.rank], k.what.Number(k.number), context.Cause(k.ctx))
	}
	missing, stalled := lacking()
	if ended == nil {
		missing, stalled = c.silent(k, missing, patience, now), c.silent(k, stalled, patience, now)
		if missing == nil && stalled == nil {
			return nil
		}
	}
	e := &comm.TimeoutError{Call: k.what.Number(k.number), After: now - k.issued}
	for _, p := range missing {
		e.Missing = append(e.Missing, p.job)
		if work := c.control.Life(p.job).Work; work != "" && e.Work == "" {
			e.Work = fmt.Sprintf("rank %d was at long work: %s; last sign of life %v ago", p.job, work,
				(now - max(k.since, c.vigil.seen[p.rank].at)).Round(time.Millisecond))
		}
	}
	for _, p := range stalled {
		e.Stalled = append(e.Stalled, p.job)
		e.Silent = max(e.Silent, now-max(k.since, c.vigil.seen[p.rank].at))
	}
	return e
}

// silent are those of the peers that have given no sign of life for as long as patience.
func (c *Comm) silent(k *call, peers []*peer, patience, now time.Duration) (late []*peer) {
	for _, p := range peers {
		if now-max(k.since, c.vigil.seen[p.rank].at) >= patience {
			late = append(late, p)
		}
	}
	return late
}
