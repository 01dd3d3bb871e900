package nodes

import (
	"runtime"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// scratch is the memory of one piece of a call whose parts change places: up to four spans.
type scratch [4]struct {
	buf npu.Buffer
	pin runtime.Pinner
}

func (s *scratch) unpin() {
	for i := range s {
		s[i].pin.Unpin()
	}
}

// span is n elements of the scratch memory of a piece. The ranks of a node ask for the same, in the same order.
func (c *Comm) span(p, i int, n int64, t npu.DType) comm.Mem {
	s := &c.scratch[p%ring][i]
	if bytes := n * int64(t.Size()); s.buf == nil || s.buf.Bytes() < bytes {
		if s.buf != nil {
			s.pin.Unpin()
			_ = s.buf.Free()
			s.buf = nil
		}
		b, err := c.inner.Alloc(max(bytes, c.piece))
		if err != nil {
			b = comm.NewHostBuffer(make([]byte, bytes)) // slower, but it does
		}
		s.buf = b
		s.pin.Pin(&b.Host()[0])
	}
	return comm.Mem{Ptr: npu.Ptr{Buf: s.buf}, Elems: n, DType: t}
}

// shuffle copies elements [from, from+n) of the part of each rank between the memory of a call and scratch memory, where at says which part it is.
func (c *Comm) shuffle(m comm.Mem, from, n int64, scratch comm.Mem, at func(node, local int) int, in bool) {
	size := int64(m.DType.Size())
	mem, s := m.Host(), scratch.Host()
	per := m.Elems / int64(c.size())
	for r := range c.size() {
		a := mem[(int64(r)*per+from)*size:][:n*size]
		b := s[int64(at(c.nodeOf[r], c.local[r]))*n*size:][:n*size]
		if in {
			copy(b, a)
		} else {
			copy(a, b)
		}
	}
}

// byNode orders parts by node, then by local rank, with room for as many ranks as the largest node has.
func (c *Comm) byNode(node, local int) int { return node*c.most + local }

// byLocal orders parts by local rank, then by node.
func (c *Comm) byLocal(node, local int) int { return local*c.nodes() + node }

// planScatter plans a ReduceScatter. Scratch: 0 the parts of all ranks, 1 those of this rank's rail, or of this node's ranks.
func (c *Comm) planScatter(k *call, j *job) {
	t, n, most := k.what.DType, int64(c.nodes()), int64(c.most)
	span := c.cut(j, k.out.Elems, n*most, t)
	if c.equal {
		j.pack = func(p int) {
			from, l := span(p)
			c.shuffle(k.in, from, l, c.span(p, 0, n*most*l, t), c.byLocal, true)
		}
		j.before = func(p int) (comm.Handle, error) {
			_, l := span(p)
			return c.inner.ReduceScatter(c.ctx, c.span(p, 1, n*l, t), c.span(p, 0, n*most*l, t), k.what.Op)
		}
		j.rail = func(p int) (comm.Handle, error) {
			from, l := span(p)
			return c.outer.ReduceScatter(c.ctx, k.out.Slice(from, l), c.span(p, 1, n*l, t), k.what.Op)
		}
		return
	}
	j.pack = func(p int) {
		from, l := span(p)
		all := c.span(p, 0, n*most*l, t)
		clear(all.Host()) // also where a node has fewer ranks
		c.shuffle(k.in, from, l, all, c.byNode, true)
	}
	j.before = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.inner.Reduce(c.ctx, c.span(p, 0, n*most*l, t), k.what.Op, 0)
	}
	j.rail = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.outer.ReduceScatter(c.ctx, c.span(p, 1, most*l, t), c.span(p, 0, n*most*l, t), k.what.Op)
	}
	j.after = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.inner.Broadcast(c.ctx, c.span(p, 1, most*l, t), 0)
	}
	j.unpack = func(p int) {
		from, l := span(p)
		copy(k.out.Slice(from, l).Host(), c.span(p, 1, most*l, t).Slice(int64(c.me())*l, l).Host())
	}
}

// planGather plans an AllGather. Scratch: 0 the parts of this rank's rail, or of this node's ranks; 1 those of all ranks.
func (c *Comm) planGather(k *call, j *job) {
	t, n, most := k.what.DType, int64(c.nodes()), int64(c.most)
	span := c.cut(j, k.in.Elems, n*most, t)
	if c.equal {
		j.rail = func(p int) (comm.Handle, error) {
			from, l := span(p)
			return c.outer.AllGather(c.ctx, c.span(p, 0, n*l, t), k.in.Slice(from, l))
		}
		j.after = func(p int) (comm.Handle, error) {
			_, l := span(p)
			return c.inner.AllGather(c.ctx, c.span(p, 1, n*most*l, t), c.span(p, 0, n*l, t))
		}
		j.unpack = func(p int) {
			from, l := span(p)
			c.shuffle(k.out, from, l, c.span(p, 1, n*most*l, t), c.byLocal, false)
		}
		return
	}
	j.before = func(p int) (comm.Handle, error) {
		from, l := span(p)
		here := int64(len(c.mine()))
		return c.inner.AllGather(c.ctx, c.span(p, 0, most*l, t).Slice(0, here*l), k.in.Slice(from, l))
	}
	j.rail = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.outer.AllGather(c.ctx, c.span(p, 1, n*most*l, t), c.span(p, 0, most*l, t))
	}
	j.after = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.inner.Broadcast(c.ctx, c.span(p, 1, n*most*l, t), 0)
	}
	j.unpack = func(p int) {
		from, l := span(p)
		c.shuffle(k.out, from, l, c.span(p, 1, n*most*l, t), c.byNode, false)
	}
}

// planExchange plans an AllToAll. Scratch: 0 this rank's parts, 1 those that the ranks of this node have for the rail, or for all ranks; 2 the same by
// node; 3 what comes.
func (c *Comm) planExchange(k *call, j *job) {
	t, n, most := k.what.DType, c.nodes(), c.most
	if !c.equal {
		c.planLeaders(k, j)
		return
	}
	all := int64(n * most)
	span := c.cut(j, k.in.Elems/int64(c.size()), all, t)
	j.pack = func(p int) {
		from, l := span(p)
		c.shuffle(k.in, from, l, c.span(p, 0, all*l, t), c.byLocal, true)
	}
	j.before = func(p int) (comm.Handle, error) { // → [local rank that sends][node that receives]
		_, l := span(p)
		return c.inner.AllToAll(c.ctx, c.span(p, 1, all*l, t), c.span(p, 0, all*l, t))
	}
	j.mid = func(p int) { // → [node that receives][local rank that sends]
		_, l := span(p)
		l *= int64(t.Size())
		from, to := c.span(p, 1, all*l/int64(t.Size()), t).Host(), c.span(p, 2, all*l/int64(t.Size()), t).Host()
		for node := range int64(n) {
			for local := range int64(most) {
				copy(to[(node*int64(most)+local)*l:][:l], from[(local*int64(n)+node)*l:])
			}
		}
	}
	j.rail = func(p int) (comm.Handle, error) { // → [node that sends][local rank that sends]
		_, l := span(p)
		return c.outer.AllToAll(c.ctx, c.span(p, 3, all*l, t), c.span(p, 2, all*l, t))
	}
	j.unpack = func(p int) {
		from, l := span(p)
		c.shuffle(k.out, from, l, c.span(p, 3, all*l, t), c.byNode, false)
	}
}

// planLeaders plans an AllToAll through the leaders.
func (c *Comm) planLeaders(k *call, j *job) {
	t, n, most := k.what.DType, int64(c.nodes()), int64(c.most)
	span := c.cut(j, k.in.Elems/int64(c.size()), n*most*most, t)
	j.pack = func(p int) {
		from, l := span(p)
		mine := c.span(p, 0, n*most*l, t)
		clear(mine.Host())
		c.shuffle(k.in, from, l, mine, c.byNode, true)
	}
	j.before = func(p int) (comm.Handle, error) { // → [local rank that sends][node that receives][local rank that receives]
		_, l := span(p)
		here := int64(len(c.mine()))
		return c.inner.AllGather(c.ctx, c.span(p, 1, n*most*most*l, t).Slice(0, here*n*most*l), c.span(p, 0, n*most*l, t))
	}
	j.mid = func(p int) { // → [node that receives][local rank that sends][local rank that receives]
		_, l := span(p)
		row := most * l * int64(t.Size())
		from, to := c.span(p, 1, n*most*most*l, t).Host(), c.span(p, 2, n*most*most*l, t).Host()
		if c.outer == nil {
			return
		}
		clear(to)
		for node := range n {
			for local := range int64(len(c.mine())) {
				copy(to[(node*most+local)*row:][:row], from[(local*n+node)*row:])
			}
		}
	}
	j.rail = func(p int) (comm.Handle, error) { // → [node that sends][local rank that sends][local rank that receives]
		_, l := span(p)
		return c.outer.AllToAll(c.ctx, c.span(p, 3, n*most*most*l, t), c.span(p, 2, n*most*most*l, t))
	}
	j.after = func(p int) (comm.Handle, error) {
		_, l := span(p)
		return c.inner.Broadcast(c.ctx, c.span(p, 3, n*most*most*l, t), 0)
	}
	j.unpack = func(p int) {
		from, l := span(p)
		at := func(node, local int) int { return (node*c.most+local)*c.most + c.me() }
		c.shuffle(k.out, from, l, c.span(p, 3, n*most*most*l, t), at, false)
	}
}
