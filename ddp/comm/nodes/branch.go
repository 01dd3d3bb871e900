package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
)

// branchTime bounds the making of the groups once all ranks are there.
const branchTime = time.Minute

// branchCall is what ranks that make a branch tell each other: a barrier that no other call is.
var branchCall = comm.Call{Kind: comm.Barrier, Root: 1}

// Branch makes a second group of the same ranks, with groups of its own inside nodes and between them.
func (c *Comm) Branch(ctx context.Context) (comm.Communicator, error) {
	if c.side.group != nil {
		return nil, fmt.Errorf("comm: nodes: rank %d: a group of one level makes no second group", c.rank)
	}
	var branch *Comm
	k := &call{c: c, what: branchCall, ctx: ctx}
	k.do = func(k *call) (err error) {
		branch, err = c.split(k)
		return err
	}
	h, err := c.enqueue(k)
	if err == nil {
		err = h.Wait(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("comm: nodes: making a second group: %w", err)
	}
	return branch, nil
}

// split makes the groups of a branch. All ranks are there.
func (c *Comm) split(k *call) (_ *Comm, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, branchTime)
	defer cancel()
	cfg := Config{Control: c.control, JobRanks: c.jobRanks, Piece: c.piece, Small: c.small}
	for _, g := range []struct {
		from  comm.Communicator
		to    *comm.Communicator
		level level
	}{{c.inner, &cfg.Inner, inwards}, {c.outer, &cfg.Outer, outwards}, {c.flat, &cfg.Flat, flat}} {
		if g.from == nil {
			continue
		}
		if *g.to, err = branchOf(ctx, g.from); err != nil {
			discard(cfg)
			return nil, c.explain(k, g.level, err)
		}
	}
	first := c.slot()
	b, err := start(cfg, c.places, c.root())
	if err != nil {
		discard(cfg)
		return nil, err
	}
	b.first = first
	return b, nil
}

// slot reports whether the control has room for the count of the branch that is being made.
func (c *Comm) slot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.branches++
	return c.branches == 1 && c.trunk == nil
}

// branchOf is comm.Branch, also for a node with one rank.
func branchOf(ctx context.Context, g comm.Communicator) (comm.Communicator, error) {
	if _, ok := g.(comm.Brancher); !ok && g.Size() == 1 {
		return self.New(), nil
	}
	return comm.Branch(ctx, g)
}

func discard(cfg Config) {
	for _, g := range []comm.Communicator{cfg.Flat, cfg.Outer, cfg.Inner} {
		if g != nil {
			_ = g.Close() // another error is being reported
		}
	}
}
