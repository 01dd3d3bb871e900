package nodes

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

// Note [greeting]
//
// A call begins with a greeting: ranks of a node exchange heads in the inner group, then nodes exchange two heads each on the rails: that of the first
// rank, and that of a rank with another call, or the first again. Data that are small enough come behind the heads.
//
// Ranks that make different calls may bring messages of different lengths. Then the group itself reports a mismatch, on all its ranks, and stays
// usable; its ranks exchange heads alone. So whatever ranks call, every group does the same sequence of calls on all its ranks, and every
// rank sees a head that differs from its own.

// carry is what a greeting carries along.
type carry struct {
	how   how
	src   comm.Mem // of this rank
	bytes int64    // of src
	node  int64    // bytes of a node
}

// how a node's data, and then the result, are made of those of its ranks.
type how uint8

const (
	nothing how = iota
	sum         // combined
	pick        // those of the root
	concat      // one after the other
)

// slab is the memory of greetings.
type slab struct {
	buf  npu.Buffer
	pin  runtime.Pinner
	room [4]int64 // where the parts begin: this rank's, its node's ranks', its node's, all nodes'
	srcs []unsafe.Pointer
}

const nodeBytes = 2 * headBytes

func pad(n int64) int64 { return (n + 7) &^ 7 }

// most1 and most2 are the most bytes that a greeting carries for a rank and for a node, equal on all ranks.
func (c *Comm) most1() int64 { return max(inside/int64(c.most), int64(8*c.most)) }

func (c *Comm) most2() int64 {
	rails := 1
	if c.equal {
		rails = c.most
	}
	return max(c.small/int64(rails*max(1, c.nodes()-1)), int64(8*c.most))
}

// open allocates the slab.
func (s *slab) open(c *Comm) (err error) {
	p, q := headBytes+pad(c.most1()), nodeBytes+pad(c.most2())
	total := int64(0)
	for i, n := range []int64{p, int64(len(c.mine())) * p, q, int64(c.nodes()) * q} {
		s.room[i] = total
		total += (n + 63) &^ 63
	}
	if s.buf, err = c.inner.Alloc(total); err != nil {
		return err
	}
	s.pin.Pin(&s.buf.Host()[0]) // reduce.Many wants sources that stay where they are
	s.srcs = make([]unsafe.Pointer, max(c.most, c.nodes()))
	return nil
}

// part is n bytes of a part of the slab.
func (s *slab) part(i int, n int64) comm.Mem {
	return comm.Mem{Ptr: npu.Ptr{Buf: s.buf, Off: s.room[i]}, Elems: n, DType: npu.U8}
}

// greet exchanges heads, and what the job carries. The first piece of the job is begun while the nodes exchange theirs.
func (c *Comm) greet(k *call, j *job) error {
	stride, agree, err := c.greetInside(k, j)
	if err != nil {
		return err
	}
	k.heard.Store(node)
	room := int64(nodeBytes)
	if agree {
		room += pad(j.carry.node)
	}
	var h comm.Handle
	if c.outer != nil {
		c.blob(k, j, stride, agree)
		if h, err = c.fly(c.outer.AllGather(c.ctx, c.slab.part(3, int64(c.nodes())*room), c.slab.part(2, room))); err != nil {
			return c.explain(k, outwards, err)
		}
	}
	if agree && j.pieces > 0 {
		if err := c.begin(k, j, 0); err != nil {
			return err
		}
	}
	if c.outer != nil {
		if err := c.greetOutside(k, h, room); err != nil {
			return err
		}
	}
	if !c.equal { // the leader passes on what it heard
		if err := c.inwardly(k)(c.inner.Broadcast(c.ctx, c.slab.part(3, int64(c.nodes())*room), 0)); err != nil {
			return err
		}
	}
	if k.arrived == 0 {
		k.arrived = c.now()
	}
	if err := c.verdict(k, stride, agree, room); err != nil {
		return err
	}
	k.heard.Store(everybody)
	if agree && j.carry.bytes > 0 {
		c.deliver(k, j, room)
	}
	return nil
}

// greetInside exchanges heads and data inside the node. stride is the distance of heads in the result, agree whether all make the same call.
func (c *Comm) greetInside(k *call, j *job) (stride int64, agree bool, err error) {
	mine := headOf(k.what, k.number, c.rank)
	stride = headBytes + pad(j.carry.bytes)
	in := c.slab.part(0, stride)
	mine.put(in.Host())
	if j.carry.bytes > 0 {
		copy(in.Host()[headBytes:], j.carry.src.Host())
	}
	n := int64(len(c.mine()))
	h, err := c.fly(c.inner.AllGather(c.ctx, c.slab.part(1, n*stride), in))
	if err == nil {
		err = c.land(h)
	}
	if m := (*comm.MismatchError)(nil); errors.As(err, &m) {
		stride = headBytes
		err = c.inwardly(k)(c.inner.AllGather(c.ctx, c.slab.part(1, n*stride), c.slab.part(0, stride)))
		return stride, false, err
	}
	if err != nil {
		return 0, false, c.explain(k, inwards, err)
	}
	agree = true
	all := c.slab.part(1, n*stride).Host()
	for l := range n {
		agree = agree && readHead(all[l*stride:]).same(mine)
	}
	return stride, agree, nil
}

// blob makes what this node tells the others.
func (c *Comm) blob(k *call, j *job, stride int64, agree bool) {
	n := int64(len(c.mine()))
	all, out := c.slab.part(1, n*stride).Host(), c.slab.part(2, nodeBytes+pad(j.carry.node)).Host()
	first := readHead(all)
	other := first
	for l := range n {
		if h := readHead(all[l*stride:]); !h.same(first) {
			other = h
			break
		}
	}
	first.put(out)
	other.put(out[headBytes:])
	if !agree {
		return
	}
	out = out[nodeBytes:]
	size := j.carry.bytes
	switch j.carry.how {
	case sum:
		srcs := c.slab.srcs[:n]
		for l := range srcs {
			srcs[l] = unsafe.Pointer(&all[int64(l)*stride+headBytes])
		}
		reduce.Many(k.what.Op, k.what.DType, int(size)/k.what.DType.Size(), unsafe.Pointer(&out[0]), nil, srcs)
	case pick:
		if c.nodeOf[k.what.Root] == c.node() {
			copy(out[:size], all[int64(c.local[k.what.Root])*stride+headBytes:])
		}
	case concat:
		for l := range n {
			copy(out[l*size:(l+1)*size], all[l*stride+headBytes:])
		}
	}
}

// greetOutside waits for the heads of all nodes.
func (c *Comm) greetOutside(k *call, h comm.Handle, room int64) error {
	err := c.land(h)
	if m := (*comm.MismatchError)(nil); errors.As(err, &m) {
		n := int64(c.nodes())
		if err := c.outwardly(k)(c.outer.AllGather(c.ctx, c.slab.part(3, n*nodeBytes), c.slab.part(2, nodeBytes))); err != nil {
			return err
		}
		all := c.slab.part(3, n*room).Host()
		for i := n - 1; i > 0; i-- { // to the places where they are expected
			copy(all[i*room:], all[i*nodeBytes:(i+1)*nodeBytes])
		}
		return nil
	}
	if err != nil {
		return c.explain(k, outwards, err)
	}
	k.met(h)
	return nil
}

// verdict finds a rank with another call.
func (c *Comm) verdict(k *call, stride int64, agree bool, room int64) error {
	mine := headOf(k.what, k.number, c.rank)
	if !agree {
		all := c.slab.part(1, int64(len(c.mine()))*stride).Host()
		for l := range int64(len(c.mine())) {
			if h := readHead(all[l*stride:]); !h.same(mine) {
				return mine.differs(h)
			}
		}
	}
	all := c.slab.part(3, int64(c.nodes())*room).Host()
	for n := range int64(c.nodes()) {
		for i := range int64(2) {
			if h := readHead(all[n*room+i*headBytes:]); !h.same(mine) {
				return mine.differs(h)
			}
		}
	}
	if !agree {
		return c.explain(k, inwards, fmt.Errorf("ranks of this node disagree, but no call differs"))
	}
	return nil
}

// deliver makes the result of what all nodes carried.
func (c *Comm) deliver(k *call, j *job, room int64) {
	all, what := c.slab.part(3, int64(c.nodes())*room).Host(), k.what
	of := func(n int, at int64) []byte { return all[int64(n)*room+nodeBytes+at:] }
	size, w := j.carry.bytes, int64(c.size())
	switch j.carry.how {
	case sum:
		from, to := int64(0), k.out.Slice(k.out.Elems-size/int64(what.DType.Size()), size/int64(what.DType.Size()))
		if what.Kind == comm.ReduceScatter {
			from, to = int64(c.rank)*k.out.Bytes(), k.out
		} else if what.Kind == comm.Reduce && what.Root != c.rank {
			return
		}
		srcs := c.slab.srcs[:c.nodes()]
		for n := range srcs {
			srcs[n] = unsafe.Pointer(&of(n, from)[0])
		}
		reduce.Many(what.Op, what.DType, int(to.Elems), unsafe.Pointer(&to.Host()[0]), nil, srcs)
	case pick:
		if what.Root != c.rank {
			out := k.out.Host()
			copy(out[int64(len(out))-size:], of(c.nodeOf[what.Root], 0)[:size])
		}
	case concat:
		out := k.out.Host()
		for r := range c.size() {
			at := int64(c.local[r]) * size
			if what.Kind == comm.AllGather {
				copy(out[int64(r)*size:int64(r+1)*size], of(c.nodeOf[r], at))
				continue
			}
			part := size / w
			copy(out[int64(r)*part:int64(r+1)*part], of(c.nodeOf[r], at+int64(c.rank)*part))
		}
	}
}
