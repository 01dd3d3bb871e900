package nodes

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
)

var _ comm.Describer = (*Comm)(nil)

// Describe returns the levels of a collective: inside this node, and between nodes.
func (c *Comm) Describe() []comm.Level {
	if c.side.group != nil {
		return describe(c.side.group)
	}
	levels := describe(c.inner)
	inside := &levels[len(levels)-1]
	inside.Algorithm = c.word
	if c.nodes() == 1 {
		return levels
	}
	if c.outer == nil { // it has a level between nodes, too, though it reaches nobody there
		l := comm.Level{Transport: "none"}
		if c.flat != nil {
			l = describe(c.flat)[0]
		}
		l.Ranks, l.Wire, l.Algorithm, l.Notes = 1, 0, nil, []string{"the first rank of this host exchanges for it", "sums " + c.Fold()}
		return append(levels, l)
	}
	out := describe(c.outer)
	last := &out[len(out)-1]
	note := "the first rank of each host exchanges for its host, because hosts have different numbers of ranks"
	if c.equal {
		last.Sharing = c.most
		note = fmt.Sprintf("%d ranks of a host exchange with other hosts at once: each its part, with the ranks of the same local number", c.most)
	}
	last.Notes = append(last.Notes, note, "sums "+c.Fold())
	return append(levels, out...)
}

// describe is what a group says of itself, or what is known of any.
func describe(g comm.Communicator) []comm.Level {
	if l := comm.Describe(g); len(l) > 0 {
		return l
	}
	return []comm.Level{{Transport: g.Transport(), Ranks: g.Size(), Wire: g.Stats().Wire}}
}

// word is how a call passes a node.
func (c *Comm) word(what comm.Call) string {
	m := comm.Mem{Elems: what.Elems, DType: what.DType}
	if what.Kind == comm.AllGather {
		m.Elems /= int64(c.size())
	}
	switch j := c.whole(&call{c: c, what: what, in: m}); {
	case what.Kind == comm.Send || what.Kind == comm.Recv:
		return "direct"
	case j.bytes <= c.most1() && j.node <= c.most2():
		return "in one trip"
	}
	return "in pieces"
}
