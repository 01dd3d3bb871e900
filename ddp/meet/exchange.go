package meet

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// Exchange gathers a small message of every rank, in rank order. what says what it is about, and must be the same on all ranks. The deadline is that of ctx, or
// that of the phase if it comes first; its error names the ranks that did not come.
func (g *Group) Exchange(ctx context.Context, what string, mine []byte) ([][]byte, error) {
	all := make([]int, g.cfg.World)
	for r := range all {
		all[r] = r
	}
	return g.gather(ctx, "exchange", what, "exchange", all, mine, limit(ctx, g.cfg.Timeouts.Exchange))
}

// gather is an exchange among some ranks. Exchanges of equal key and ranks come in the same order on all of them.
func (g *Group) gather(ctx context.Context, key, what, phase string, ranks []int, mine []byte, limit time.Duration) ([][]byte, error) {
	c := make(chan *wire.Gathered, 1)
	begun := time.Now()
	g.mu.Lock()
	if err := g.err; err != nil || g.over || g.closed {
		g.mu.Unlock()
		if err == nil {
			err = fmt.Errorf("meet: %s: the job is over", what)
		}
		return nil, err
	}
	id := fmt.Sprint(key, ranks)
	n := g.counts[id]
	g.counts[id]++
	g.seq++
	m := wire.Gather{Seq: g.seq, Key: fmt.Sprintf("%s %d", key, n), What: what, Ranks: ranks, Limit: uint64(limit.Milliseconds()), Mine: mine}
	g.waits[g.seq] = c
	g.control.send(wire.KindGather, m.Append(nil))
	g.mu.Unlock()
	late := &LateError{phase, 0, nil, what, "look for the first error of the other ranks"}
	t := time.NewTimer(limit + patient) // the coordinator watches the limit, and knows who is missing
	defer t.Stop()
	done := ctx.Done()
	for {
		select {
		case a := <-c:
			late.After, late.Ranks = time.Since(begun), a.Missing
			switch {
			case a.Problem != "":
				return nil, &RefusedError{a.Problem, "run the same program with the same settings on all ranks"}
			case len(a.Missing) > 0:
				late.Text = fmt.Sprintf("%s: waiting for %s", what, g.roster.Names(a.Missing))
				return nil, late
			case len(a.All) != len(ranks):
				return nil, wire.ErrMalformed
			}
			return a.All, nil
		case <-g.down:
			return nil, g.Err()
		case <-g.bye:
			if err := g.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("meet: %s: the job is over", what)
		case <-done:
			if ctx.Err() == context.DeadlineExceeded { // the coordinator's answer comes at the same time
				done = nil
				continue
			}
			return nil, context.Cause(ctx)
		case <-t.C:
			late.After = time.Since(begun)
			return nil, late
		}
	}
}
