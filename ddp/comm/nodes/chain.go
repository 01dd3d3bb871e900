package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
)

var _ comm.Leveled = (*Comm)(nil)

// Note [chains]
//
// A group of a chain is a Comm with one level: it has the driver, the guard and the errors of any other, but its calls go straight to its group, without a
// greeting. Nor does it count for itself who is missing: call i of every group of a chain follows call i of its first, so a rank that has issued fewer
// calls there is the one for which all wait.

// side is what makes a Comm a group of one level.
type side struct {
	group comm.Communicator // nil: the Comm has all levels
	level level
	head  *Comm // the first group of the chain
}

// chainRoot is beyond those of calls that users make.
const chainRoot = 2

// chainCall is what ranks that make a chain tell each other.
func chainCall(spans []comm.Span) comm.Call {
	c := comm.Call{Kind: comm.Barrier, Root: chainRoot, Elems: 1}
	for _, s := range spans {
		c.Elems = c.Elems<<1 | int64(s)
	}
	return c
}

// Chain makes groups inside and between nodes.
func (c *Comm) Chain(ctx context.Context, spans ...comm.Span) (groups []comm.Communicator, err error) {
	switch {
	case c.side.group != nil:
		err = errors.New("this group has one level already")
	case !c.equal || c.nodes() == 1:
		err = fmt.Errorf("a chain needs several nodes with as many ranks each, these have %v", c.counts())
	case len(spans) == 0 || len(spans) > 60:
		err = fmt.Errorf("a chain of %d groups", len(spans))
	}
	if err != nil {
		return nil, fmt.Errorf("comm: nodes: rank %d: %w", c.rank, err)
	}
	k := &call{c: c, what: chainCall(spans), ctx: ctx}
	k.do = func(k *call) error {
		made, err := c.forge(k, spans)
		groups = made
		return err
	}
	h, err := c.enqueue(k)
	if err == nil {
		err = h.Wait(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("comm: nodes: making groups of levels: %w", err)
	}
	return groups, nil
}

// counts are the ranks of each node.
func (p *places) counts() (n []int) {
	for _, ranks := range p.ranks {
		n = append(n, len(ranks))
	}
	return n
}

// forge makes the groups of a chain. All ranks are there.
func (c *Comm) forge(k *call, spans []comm.Span) (groups []comm.Communicator, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, branchTime)
	defer cancel()
	first := c.slot()
	var head *Comm
	for _, s := range spans {
		from, l := c.inner, inwards
		if s == comm.Between {
			from, l = c.outer, outwards
		}
		g, err := branchOf(ctx, from)
		if err != nil {
			for _, g := range groups {
				_ = g.Close() // another error is being reported
			}
			return nil, c.explain(k, l, err)
		}
		cfg := Config{Control: c.control, JobRanks: c.jobRanks}
		if l == inwards {
			cfg.Inner = g
		} else {
			cfg.Outer = g
		}
		b := assemble(cfg, c.places, c.root())
		if head == nil {
			head, b.first = b, first
		}
		b.side = side{g, l, head}
		b.live()
		groups = append(groups, b)
	}
	return groups, nil
}

// member reports whether a rank of the job is in a group of one level.
func (c *Comm) member(rank int) bool {
	if c.side.level == inwards {
		return c.nodeOf[rank] == c.node()
	}
	return c.local[rank] == c.me()
}

// late are the ranks for which a call of a chain waits, as far as is known: those that have not come to the first group.
func (c *Comm) late(k *call) (ranks []int) {
	head := c.side.head
	if !head.first || k.heard.Load() == everybody {
		return nil
	}
	for r := range c.places.size() {
		if r == c.rank || head == c && !c.member(r) {
			continue
		}
		if behind(c.control.Life(r).Calls, true, k.number) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
