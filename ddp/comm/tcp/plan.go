package tcp

import (
	"math/bits"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/npu"
)

const direct = uint16(link.Direct)

// target is memory that this rank reduces.
type target struct {
	dst, own address
	n        int
}

// plan is what a call does: what goes to each peer and comes from it (in the peers), and what is reduced. Both ends of a connection derive the same
// sequence of pieces from the call alone.
type plan struct {
	algorithm uint16
	targets   []target
	done      int     // bytes of the first target that are reduced
	sums      int     // pieces reduced
	order     []int   // ranks in the order of the sum; this rank stands for its own memory
	after     []*peer // to whom a reduced piece releases one
	inPlace   bool    // the target is what is sent: a piece may be reduced once it has gone to every peer
}

func (a *plan) reset() {
	a.targets, a.after, a.inPlace = a.targets[:0], a.after[:0], false
	a.done, a.sums = 0, 0
}

// reduceTo adds memory that this rank reduces, in place if dst is nil.
func (a *plan) reduceTo(dst, own []byte) {
	if len(own) == 0 {
		return
	}
	if dst == nil {
		dst = own
	}
	a.targets = append(a.targets, target{addressOf(dst), addressOf(own), len(own)})
}

// lay plans a call.
func (c *Comm) lay(k *call) {
	c.plan.reset()
	for _, p := range c.others {
		p.reset()
	}
	c.plan.order = c.everyone
	in, out := k.in.Host(), k.out.Host()
	c.plan.algorithm = 0
	switch k.what.Kind {
	case comm.AllReduce:
		c.layAllReduce(k, in)
	case comm.ReduceScatter:
		c.layReduceScatter(out, in)
	case comm.AllGather, comm.AllToAll:
		c.layShare(k.what.Kind == comm.AllToAll, out, in)
	case comm.Reduce:
		c.layReduce(k.what.Root, in)
	case comm.Broadcast:
		c.layBroadcast(k.what.Root, in)
	}
	c.outLeft, c.inLeft = 0, 0
	for _, p := range c.others {
		p.begin()
		c.outLeft += p.outN
		c.inLeft += p.inN
	}
}

// algorithm chooses how an all-reduce travels; the same on all ranks.
func (c *Comm) algorithm(what comm.Call) link.Algorithm {
	bytes := what.Elems * int64(what.DType.Size())
	a := c.small
	if bytes >= c.crossover {
		a = c.large
	}
	half := what.DType == npu.BF16 || what.DType == npu.F16
	if a == link.Chain && half && what.Op == comm.Sum {
		return link.Gather // a chain would round at every rank
	}
	return a
}

// part is what rank r reduces of x: its borders are multiples of 64 bytes.
func (c *Comm) part(x []byte, r int) []byte {
	cut := func(r int) int {
		if r == c.size {
			return len(x)
		}
		return len(x) / 64 * r / c.size * 64
	}
	return x[cut(r):cut(r+1)]
}

func (c *Comm) layAllReduce(k *call, x []byte) {
	a := c.algorithm(k.what)
	c.plan.algorithm = uint16(a)
	switch a {
	case link.Exchange:
		c.plan.reduceTo(nil, x)
		c.plan.inPlace = true
		for _, p := range c.others {
			p.give(x, phaseExchange, false)
			p.stageIn(len(x), phaseExchange, false)
		}
	case link.Direct:
		mine := c.part(x, c.rank)
		c.plan.reduceTo(nil, mine)
		c.plan.after = append(c.plan.after, c.others...)
		for _, p := range c.others {
			its := c.part(x, p.rank)
			p.give(its, phaseScatter, false)
			p.give(mine, phaseGather, true)
			p.stageIn(len(mine), phaseScatter, false)
			p.take(its, true, false)
		}
	case link.Gather:
		c.layTree(x)
	case link.Chain:
		c.layChain(x)
	case link.Circle:
		c.layRing(x)
	}
}

// layTree gathers to rank 0, which reduces, and sends the result along a binomial tree.
func (c *Comm) layTree(x []byte) {
	children := func(give func(p *peer)) {
		lowest := c.rank & -c.rank
		if c.rank == 0 {
			lowest = 1 << bits.Len(uint(c.size))
		}
		for bit := lowest >> 1; bit > 0; bit >>= 1 { // the largest subtree first
			if r := c.rank | bit; r < c.size {
				give(c.peers[r])
			}
		}
	}
	if c.rank == 0 {
		c.plan.reduceTo(nil, x)
		for _, p := range c.others {
			p.stageIn(len(x), phaseScatter, false)
		}
		children(func(p *peer) {
			p.give(x, phaseGather, true)
			c.plan.after = append(c.plan.after, p)
		})
		return
	}
	c.peers[0].give(x, phaseScatter, false)
	parent := c.peers[c.rank&(c.rank-1)]
	parent.take(x, true, false)
	children(func(p *peer) {
		p.give(x, phaseGather, true)
		parent.then = append(parent.then, p)
	})
}

// layChain sends prefix sums up the ranks and the result down.
func (c *Comm) layChain(x []byte) {
	var below, above *peer
	if c.rank > 0 {
		below = c.peers[c.rank-1]
	}
	if c.rank < c.size-1 {
		above = c.peers[c.rank+1]
	}
	if below != nil {
		c.plan.reduceTo(nil, x)
		c.plan.order = c.pair(below.rank)
		below.stageIn(len(x), phaseScatter, below.rank > 0)
		below.give(x, phaseGather, true)
	}
	switch {
	case above == nil:
		c.plan.after = append(c.plan.after, below)
	default:
		above.give(x, phaseScatter, below != nil)
		above.take(x, true, false)
		if below != nil {
			c.plan.after = append(c.plan.after, above)
			above.then = append(above.then, below)
		}
	}
}

// pair is the order of a sum with one other rank.
func (c *Comm) pair(other int) []int {
	c.two[0], c.two[1] = other, c.rank
	return c.two[:]
}

// layRing sends every part round: part r begins at rank r+1, is complete at rank r, and goes round once more.
func (c *Comm) layRing(x []byte) {
	w := c.size
	at := func(r int) []byte { return c.part(x, (r+2*w)%w) }
	right, left := c.peers[(c.rank+1)%w], c.peers[(c.rank+w-1)%w]
	c.plan.order = c.pair(left.rank)
	c.plan.after = append(c.plan.after, right)
	left.then = append(left.then, right)
	for s := range 2 * (w - 1) {
		gather := s >= w-1
		round := s % (w - 1)
		give, take := at(c.rank-1-round), at(c.rank-2-round)
		if gather {
			give, take = at(c.rank-round), at(c.rank-1-round)
		}
		if gather {
			right.give(give, phaseGather, true)
			left.take(take, true, false)
			continue
		}
		right.give(give, phaseScatter, s > 0)
		left.stageIn(len(take), phaseScatter, s > 0)
		c.plan.reduceTo(nil, take)
	}
}

func (c *Comm) layReduceScatter(out, in []byte) {
	n := len(in) / c.size
	mine := in[c.rank*n : (c.rank+1)*n]
	if c.size == 1 {
		copy(out, mine)
		return
	}
	c.plan.algorithm = direct
	c.plan.reduceTo(out, mine)
	for _, p := range c.others {
		p.give(in[p.rank*n:(p.rank+1)*n], phaseScatter, false)
		p.stageIn(n, phaseScatter, false)
	}
}

// layShare is an all-gather, or an all-to-all, in which every peer gets another part.
func (c *Comm) layShare(parts bool, out, in []byte) {
	n := len(out) / c.size
	c.plan.algorithm = direct
	for _, p := range c.others {
		mine := in
		if parts {
			mine = in[p.rank*n : (p.rank+1)*n]
		}
		p.give(mine, phaseGather, false)
		p.take(out[p.rank*n:(p.rank+1)*n], false, true)
	}
	if n > 0 {
		mine := in
		if parts {
			mine = in[c.rank*n : (c.rank+1)*n]
		}
		if dst := out[c.rank*n:]; &dst[0] != &mine[0] {
			copy(dst[:n], mine)
		}
	}
}

// layReduce sends all to root, or parts to their owners and these to root.
func (c *Comm) layReduce(root int, x []byte) {
	if int64(len(x)) < c.crossover {
		if c.rank != root {
			c.peers[root].give(x, phaseExchange, false)
			return
		}
		c.plan.reduceTo(nil, x)
		for _, p := range c.others {
			p.stageIn(len(x), phaseExchange, false)
		}
		return
	}
	c.plan.algorithm = direct
	mine := c.part(x, c.rank)
	c.plan.reduceTo(nil, mine)
	for _, p := range c.others {
		p.give(c.part(x, p.rank), phaseScatter, false)
		p.stageIn(len(mine), phaseScatter, false)
		switch root {
		case p.rank:
			p.give(mine, phaseGather, true)
			c.plan.after = append(c.plan.after, p)
		case c.rank:
			p.take(c.part(x, p.rank), true, false)
		}
	}
}

// layBroadcast sends root's memory to all, or a part to each, which passes it on to the others.
func (c *Comm) layBroadcast(root int, x []byte) {
	large := int64(len(x)) >= c.crossover && c.size > 2
	if large {
		c.plan.algorithm = direct
	}
	switch {
	case c.rank == root && !large:
		for _, p := range c.others {
			p.give(x, phaseGather, false)
		}
	case c.rank == root:
		for _, p := range c.others {
			p.give(c.part(x, p.rank), phaseGather, false)
			p.give(c.part(x, root), phaseGather, false)
		}
	case !large:
		c.peers[root].take(x, false, true)
	default:
		source := c.peers[root]
		source.take(c.part(x, c.rank), false, true)
		source.take(c.part(x, root), false, true)
		for _, p := range c.others {
			if p.rank != root {
				p.give(c.part(x, c.rank), phaseGather, true)
				p.take(c.part(x, p.rank), true, true)
				source.then = append(source.then, p)
			}
		}
	}
}
