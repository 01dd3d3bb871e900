package meet

import (
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// inform notes that a rank knows why the job does not start.
func (c *coordinator) inform(rank int) {
	c.informed[rank] = true
	c.settle()
}

// fail tells everybody that the job cannot start.
func (c *coordinator) fail(g *wire.Gathered) {
	c.problem = g
	for _, p := range c.peers {
		if p != nil && !p.gone {
			p.control.send(wire.KindRefuse, g.Append(nil))
			c.informed[p.join.Rank] = true
		}
	}
	c.settle()
}

// settle notes when rank 0 need not wait any longer: all ranks have left or, after a failed start, know why.
func (c *coordinator) settle() {
	for r, p := range c.peers {
		switch {
		case r == 0 || c.announced && c.started:
		case c.started && !p.left && !p.gone:
			return
		case !c.started && !c.informed[r]:
			return
		}
	}
	select {
	case <-c.empty:
	default:
		close(c.empty)
	}
}

// patience returns how long rank 0 waits before it ends the coordinator.
func (c *coordinator) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.started && !c.announced:
		return c.cfg.Timeouts.End
	case c.started || c.problem != nil && len(c.problem.Missing) > 0:
		return 0
	case c.problem == nil && !c.announced:
		c.cause.ended(0, "it gave up before all ranks had come")
		c.announce()
	}
	return c.cfg.Timeouts.Handshake // ranks that are just coming should be told why there is no job, or they would look for it until their deadline
}

// end stops the coordinator. It returns the ranks that have not left.
func (c *coordinator) end() (stayed []int) {
	t := time.NewTimer(c.patience())
	select {
	case <-c.empty:
	case <-t.C:
	}
	t.Stop()
	c.acceptor.close()
	c.mu.Lock()
	c.ended = true
	var conns []*controlConn // of ranks that have come; the others get their refusal from serve, and go
	for r, p := range c.peers {
		if p == nil || p.gone {
			continue
		}
		conns = append(conns, p.control)
		if c.started && !c.announced {
			if r > 0 && !p.left {
				stayed = append(stayed, r)
			}
			p.control.send(wire.KindBye, nil)
		}
	}
	for _, g := range c.gathers {
		g.stop()
	}
	c.mu.Unlock()
	close(c.stop)
	until := time.Now().Add(time.Second)
	for _, l := range conns {
		l.flush(time.Until(until))
	}
	for _, l := range conns {
		l.conn.SetReadDeadline(until) // the other side closes first, so nothing on its way is lost
	}
	c.wg.Wait()
	return stayed
}

// textAndHint takes a problem apart.
func textAndHint(p string) (text, hint string) {
	text, hint, _ = strings.Cut(p, "\n")
	return text, hint
}
