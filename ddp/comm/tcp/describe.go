package tcp

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
)

var _ comm.Describer = (*Comm)(nil)

// Link is the link of the slowest rank, from which the algorithms are chosen. It is zero for a group of one.
func (c *Comm) Link() link.Link { return c.link }

// Describe returns the one level of the group.
func (c *Comm) Describe() []comm.Level {
	level := comm.Level{Transport: "tcp", Ranks: c.size, Address: c.address, Latency: c.link.Latency, Bandwidth: c.link.Bandwidth,
		Wire: c.Stats().Wire, Algorithm: c.word}
	if c.size > 1 {
		level.Notes = append(level.Notes, "topology "+c.cfg.Topology.String()+": "+c.link.Says(c.cfg.Topology, c.size), "congestion control "+c.congestion)
		if c.cfg.Link != nil {
			level.Notes = append(level.Notes, "the numbers of the link were given, not measured")
		}
		if n := c.cfg.Streams; n > 1 {
			level.Notes = append(level.Notes, fmt.Sprintf("%d connections for each pair of ranks", n))
		}
		if c.crowded && c.cfg.Look == 0 {
			level.Notes = append(level.Notes, "more ranks than processors on this machine: a rank sleeps at once when it waits")
		}
	}
	return []comm.Level{level}
}

// word is how a call travels.
func (c *Comm) word(what comm.Call) string {
	large := what.Elems*int64(what.DType.Size()) >= c.crossover
	switch what.Kind {
	case comm.AllReduce:
		return c.algorithm(what).String()
	case comm.Reduce:
		if !large {
			return link.Gather.String()
		}
	case comm.Broadcast:
		if !large || c.size == 2 {
			return "direct"
		}
	case comm.Barrier, comm.Send, comm.Recv:
		return "direct"
	}
	return link.Direct.String()
}
