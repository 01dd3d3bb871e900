package nodes

import (
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// plan decides how a call travels, from what is equal on all ranks alone.
func (c *Comm) plan(k *call) (j job) {
	what := k.what
	if k.do != nil || what.Kind == comm.Barrier || what.Elems == 0 {
		return j
	}
	if j.carry = c.whole(k); j.carry.bytes <= c.most1() && j.carry.node <= c.most2() {
		return j
	}
	j.carry = carry{}
	switch what.Kind {
	case comm.AllReduce, comm.Reduce, comm.Broadcast:
		c.inPlace(k, &j)
	case comm.ReduceScatter:
		c.planScatter(k, &j)
	case comm.AllGather:
		c.planGather(k, &j)
	case comm.AllToAll:
		c.planExchange(k, &j)
	}
	return j
}

// whole is what a greeting carries if it carries all of a call.
func (c *Comm) whole(k *call) carry {
	n := k.in.Bytes()
	switch k.what.Kind {
	case comm.Broadcast:
		return carry{pick, k.in, n, n}
	case comm.AllGather, comm.AllToAll:
		return carry{concat, k.in, n, n * int64(c.most)}
	}
	return carry{sum, k.in, n, n}
}

// inPlace plans a call whose memory has the same size before and after. With a rail for each rank, pieces are cut so that the ranks of a node divide
// them; the few elements that are left travel with the greeting.
func (c *Comm) inPlace(k *call, j *job) {
	m, size := k.out, int64(k.what.DType.Size())
	lanes := int64(1)
	if c.equal {
		lanes = int64(c.most)
	}
	if tail := m.Elems % lanes; tail > 0 {
		j.carry = carry{sum, m.Slice(m.Elems-tail, tail), tail * size, tail * size}
		if k.what.Kind == comm.Broadcast {
			j.carry.how = pick
		}
		m = m.Slice(0, m.Elems-tail)
	}
	const grain = 1024 // parts of pieces begin on cache lines, if the memory does
	per := max(1, c.piece/size/(grain*lanes)) * grain * lanes
	j.pieces = int((m.Elems + per - 1) / per)
	piece := func(p int) comm.Mem { return m.Slice(int64(p)*per, min(per, m.Elems-int64(p)*per)) }
	share := func(p int) comm.Mem { // what is on this rank's rail
		v := piece(p)
		return v.Slice(int64(c.me())*(v.Elems/lanes), v.Elems/lanes)
	}
	if !c.equal {
		share = piece
	}
	c.inPlaceBefore(k, j, piece, share)
	root, home := 0, true // home: this node needs the last stage
	if k.what.Kind != comm.AllReduce {
		root = c.nodeOf[k.what.Root]
		home = root == c.node()
	}
	switch k.what.Kind {
	case comm.AllReduce:
		j.rail = func(p int) (comm.Handle, error) { return c.outer.AllReduce(c.ctx, share(p), k.what.Op) }
	case comm.Reduce:
		j.rail = func(p int) (comm.Handle, error) { return c.outer.Reduce(c.ctx, share(p), k.what.Op, root) }
	case comm.Broadcast:
		j.rail = func(p int) (comm.Handle, error) { return c.outer.Broadcast(c.ctx, share(p), root) }
		home = !home
	}
	if home && c.equal {
		j.after = func(p int) (comm.Handle, error) { return c.inner.AllGather(c.ctx, piece(p), share(p)) }
	} else if home {
		j.after = func(p int) (comm.Handle, error) { return c.inner.Broadcast(c.ctx, piece(p), 0) }
	}
}

// inPlaceBefore plans the first stage of inPlace.
func (c *Comm) inPlaceBefore(k *call, j *job, piece, share func(p int) comm.Mem) {
	switch {
	case k.what.Kind == comm.Broadcast:
		if root := k.what.Root; c.nodeOf[root] == c.node() {
			j.before = func(p int) (comm.Handle, error) { return c.inner.Broadcast(c.ctx, piece(p), c.local[root]) }
		}
	case c.equal:
		j.before = func(p int) (comm.Handle, error) { return c.inner.ReduceScatter(c.ctx, share(p), piece(p), k.what.Op) }
	default:
		j.before = func(p int) (comm.Handle, error) { return c.inner.Reduce(c.ctx, piece(p), k.what.Op, 0) }
	}
}

// cut divides parts of n elements into pieces, so that lots elements of each piece element fit the scratch memory. The function gives the range of a piece.
func (c *Comm) cut(j *job, n, lots int64, t npu.DType) (span func(p int) (from, len int64)) {
	per := max(1, c.piece/int64(t.Size())/lots)
	j.pieces = int((n + per - 1) / per)
	return func(p int) (from, len int64) {
		from = int64(p) * per
		return from, min(per, n-from)
	}
}
