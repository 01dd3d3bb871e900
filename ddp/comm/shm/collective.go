package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
)

// parts reports whether the source of the call is split into one part per rank.
func (k *call) parts() bool {
	return k.what.Kind == comm.ReduceScatter || k.what.Kind == comm.AllToAll
}

// length returns the number of elements of a source, or of one part of it.
func (k *call) length() int64 {
	switch k.what.Kind {
	case comm.ReduceScatter, comm.AllToAll, comm.AllGather:
		return k.what.Elems / int64(k.c.size)
	}
	return k.what.Elems
}

// chunkElems returns how many elements of length go through a slot at once.
func (k *call) chunkElems() int64 {
	size := int64(max(k.what.DType.Size(), 1))
	if k.parts() {
		return slotBytes / size / int64(k.c.size)
	}
	return slotBytes / size
}

// stageIn copies the current chunk of this rank's source to a slot and records the slot in the line.
//
// Two alternating slots are enough: a slot is rewritten only after the other was used, and no peer enters the first round of that use before
// it has read this slot.
func (k *call) stageIn(l *line) {
	c := k.c
	c.slots++
	k.slot = c.slots & 1
	atomic.StoreUint32(&l.slot, k.slot)
	if !k.gives() || k.what.Elems == 0 {
		return
	}
	dst, src := c.v.slotMem(c.rank, k.slot), k.in.Host()
	size := int64(k.what.DType.Size())
	from, n := k.span()
	count := 1
	if k.parts() {
		count = c.size
	}
	for j := range int64(count) {
		at := (j*k.length() + from) * size
		copy(dst[j*n*size:(j+1)*n*size], src[at:at+n*size])
	}
	k.wire += int64(count) * n * size
}

// consume does this rank's share of a chunk once all sources are readable.
func (k *call) consume(from, n int64) {
	c, t := k.c, k.what.DType
	size := int64(t.Size())
	switch k.what.Kind {
	case comm.AllReduce: // small only
		k.combine(unsafe.Pointer(&k.out.Host()[0]), from, n, 0)
	case comm.Reduce:
		if c.rank == k.what.Root {
			k.combine(unsafe.Pointer(&k.out.Host()[from*size]), from, n, 0)
		}
	case comm.ReduceScatter:
		n = min(n, k.length()-from)
		k.combine(unsafe.Pointer(&k.out.Host()[from*size]), from, n, c.rank)
	case comm.Broadcast:
		if c.rank != k.what.Root {
			move(k.out.Host()[from*size:], k.source(k.what.Root, from, n, 0), n*size)
		}
	case comm.AllGather:
		n = min(n, k.length()-from)
		for r := range c.size {
			move(k.out.Host()[(int64(r)*k.length()+from)*size:], k.source(r, from, n, 0), n*size)
		}
	case comm.AllToAll:
		n = min(n, k.length()-from)
		for r := range c.size {
			move(k.out.Host()[(int64(r)*k.length()+from)*size:], k.source(r, from, n, c.rank), n*size)
		}
	}
}

// combine reduces the chunk of all ranks, in rank order, to dst.
func (k *call) combine(dst unsafe.Pointer, from, n int64, part int) {
	src := k.c.srcs
	for r := range src {
		src[r] = k.source(r, from, n, part)
	}
	reduce.Many(k.what.Op, k.what.DType, int(n), dst, nil, src)
}

// reducePart reduces this rank's share of a staged chunk into its own slot, from which collect reads it.
func (k *call) reducePart(from, n int64) {
	c, size := k.c, int64(k.what.DType.Size())
	lo, hi := share(n, size, c.size, c.rank)
	if lo == hi {
		return
	}
	if c.ptrs[c.rank].direct != nil { // not staged, but the result needs a slot
		c.slots++
		k.slot = c.slots & 1
	}
	src := c.srcs
	for r := range src {
		src[r] = unsafe.Add(k.source(r, from, n, 0), lo*size)
	}
	dst := c.v.slotMem(c.rank, k.slot)
	reduce.Many(k.what.Op, k.what.DType, int(hi-lo), unsafe.Pointer(&dst[lo*size]), nil, src)
	k.wire += (hi - lo) * size
}

// collect copies the reduced parts of a chunk from all slots.
func (k *call) collect() {
	c, size := k.c, int64(k.what.DType.Size())
	from, n := k.span()
	out := k.out.Host()
	for r := range c.size {
		lo, hi := share(n, size, c.size, r)
		if lo < hi {
			mem := c.v.slotMem(r, atomic.LoadUint32(&k.line(r).slot))
			copy(out[(from+lo)*size:(from+hi)*size], mem[lo*size:])
		}
	}
}

// whole does the entire call at once: all sources are readable in place.
func (k *call) whole() {
	c, size := k.c, int64(k.what.DType.Size())
	switch k.what.Kind {
	case comm.AllReduce, comm.Reduce:
		lo, hi := share(k.what.Elems, size, c.size, c.rank)
		if lo == hi {
			return
		}
		for r := range c.srcs {
			c.srcs[r] = unsafe.Add(c.ptrs[r].direct, lo*size)
		}
		to := c.srcs
		if k.what.Kind == comm.Reduce {
			to = c.srcs[k.what.Root : k.what.Root+1]
		}
		reduce.Many(k.what.Op, k.what.DType, int(hi-lo), nil, to, c.srcs)
		k.wire += int64(len(to)) * (hi - lo) * size
	default:
		k.consume(0, k.length())
	}
}

// share returns the range of n elements that rank r of w reduces. Shares begin on cache lines, for large spans on pages.
func share(n, size int64, w, r int) (lo, hi int64) {
	grain := int64(64)
	if n*size >= hugeBytes {
		grain = pageBytes
	}
	per := align((n*size+int64(w)-1)/int64(w), grain) / size
	return min(n, int64(r)*per), min(n, int64(r+1)*per)
}

// move copies n bytes unless source and destination are the same.
func move(dst []byte, src unsafe.Pointer, n int64) {
	if n == 0 || unsafe.Pointer(&dst[0]) == src {
		return
	}
	const piece = 1 << 20 // a copy cannot be interrupted by the garbage collector
	from := unsafe.Slice((*byte)(src), n)
	for len(from) > 0 {
		m := copy(dst, from[:min(piece, len(from))])
		dst, from = dst[m:], from[m:]
	}
}
