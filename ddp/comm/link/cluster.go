package link

import (
	"fmt"
	"time"
)

// Cluster is a job's ranks on its hosts. With several ranks a host, these reduce among themselves, each sends its part to the equal ranks of the other hosts
// over the card that they share, and they gather the result.
type Cluster struct {
	Ranks    int
	Hosts    int      // ranks are spread evenly; 1: all on one machine
	Link     Link     // between hosts
	Local    Link     // between ranks of a host; the zero value is the variable Local
	Topology Topology // between hosts
}

// piece is the part of a large call that travels on the wire while the host reduces the next.
const piece = 4 << 20

// Valid reports what is wrong with a cluster.
func (c Cluster) Valid() error {
	switch {
	case c.Ranks < 1 || c.Hosts < 1:
		return fmt.Errorf("link: %d ranks on %d hosts", c.Ranks, c.Hosts)
	case c.Ranks%c.Hosts != 0:
		return fmt.Errorf("link: %d ranks cannot be spread evenly over %d hosts", c.Ranks, c.Hosts)
	}
	if c.Hosts > 1 {
		if err := c.Link.Valid(); err != nil {
			return err
		}
	}
	if c.Local != (Link{}) {
		return c.Local.Valid()
	}
	return nil
}

// PerHost is the number of ranks of a host.
func (c Cluster) PerHost() int { return c.Ranks / c.Hosts }

// Inside is the link between ranks of a host.
func (c Cluster) Inside() Link {
	if c.Local == (Link{}) {
		return Local
	}
	return c.Local
}

// wire is the link between hosts as one of a host's ranks sees it when all use it: n bytes of a call pass the card however many ranks share it, but each
// rank adds only its part.
func (c Cluster) wire() Link {
	l := c.Link
	l.Reduce /= float64(c.PerHost())
	return l
}

// Between is the cluster as one of the ranks of a host sees it that work together between hosts only: a rank for each host. What all ranks of a host send
// counts as sent by one, since they share the card.
func (c Cluster) Between() Cluster {
	return Cluster{Ranks: c.Hosts, Hosts: c.Hosts, Link: c.wire(), Local: c.Local, Topology: c.Topology}
}

// AllReduce is the time of an all-reduce of n bytes.
func (c Cluster) AllReduce(n int64) time.Duration {
	if c.Ranks < 2 {
		return 0
	}
	inside, l := c.PerHost(), c.Inside()
	if c.Hosts == 1 {
		return l.Scatter(inside, n) + l.Share(inside, n)
	}
	wire := c.wire()
	outside := wire.AllReduce(wire.Choose(c.Topology, c.Hosts, n/int64(inside)), c.Hosts, n)
	if inside == 1 {
		return outside
	}
	return pipeline(l.Scatter(inside, n)+l.Share(inside, n), outside, n)
}

// AllToAll is the time of an all-to-all of n bytes, all parts together. Every rank has parts for every rank of the other hosts, so the card carries those of
// all ranks of the host.
func (c Cluster) AllToAll(n int64) time.Duration {
	inside := c.PerHost()
	if c.Ranks < 2 || c.Hosts == 1 || inside == 1 {
		return c.Share(n)
	}
	return pipeline(c.Inside().Share(inside, n), c.wire().Share(c.Hosts, n*int64(inside)), n)
}

// Share is the time of an all-gather of n bytes, all parts together.
func (c Cluster) Share(n int64) time.Duration {
	if c.Ranks < 2 {
		return 0
	}
	inside, l := c.PerHost(), c.Inside()
	if c.Hosts == 1 {
		return l.Share(inside, n)
	}
	outside := c.wire().Share(c.Hosts, n)
	if inside == 1 {
		return outside
	}
	return pipeline(l.Share(inside, n), outside, n)
}

// pipeline is the time of two stages that pieces of n bytes pass one after the other.
func pipeline(a, b time.Duration, n int64) time.Duration {
	pieces := max(1, (n+piece-1)/piece)
	return max(a, b) + min(a, b)/time.Duration(pieces)
}

// Bound is the least time that the wire allows for an all-reduce of n bytes; 0 on one machine.
func (c Cluster) Bound(n int64) time.Duration {
	if c.Hosts < 2 {
		return 0
	}
	return c.Link.Bound(c.Hosts, n)
}

// Says describes how the cluster reduces, for the start of a run and for a plan.
func (c Cluster) Says() string {
	if c.Ranks < 2 {
		return "one rank: nothing to send"
	}
	if c.Hosts == 1 {
		return fmt.Sprintf("%d ranks on one machine, in shared memory (%v)", c.Ranks, c.Inside())
	}
	if c.PerHost() == 1 {
		return c.Link.Says(c.Topology, c.Hosts)
	}
	s := c.wire().Says(c.Topology, c.Hosts)
	return fmt.Sprintf("%d ranks a host reduce in shared memory (%v); between %d hosts %s", c.PerHost(), c.Inside(), c.Hosts, s)
}
