package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// machine is the state of a collective between two rounds.
type machine struct {
	stage  stage
	small  bool  // one round through slots, whatever the memory
	met    bool  // all ranks called
	shared bool  // some rank's memory is read in place: it must not return before all ranks are done
	chunk  int64 // staged: which chunk
	per    int64 // staged: elements per chunk (of a part, where the call has parts)
	slot   uint32
	wire   int64 // bytes written for others to read
}

type stage uint8

const (
	fresh     stage = iota
	published       // this rank called; waiting for the others' calls
	staged          // waiting for chunk to be in all slots
	reduced         // waiting for all parts of chunk to be reduced (AllReduce only)
	last            // waiting for all to be done
)

// pointers is scratch of the driver for one rank.
type pointers struct {
	direct unsafe.Pointer // memory of the rank read in place, nil if staged
}

func newPointers(size int) []pointers { return make([]pointers, size) }

// next opens the next round and returns the line to publish.
func (c *Comm) next() *line {
	c.round++
	return &c.v.block[c.rank].line[c.round&1]
}

// begin publishes the call, with the data of its first chunk if it is staged.
func (k *call) begin() {
	c := k.c
	l := c.next()
	k.arrived = k.issued // unless this rank has to wait
	off, base, bytes := int64(-1), int64(0), int64(0)
	if !k.small && k.gives() {
		off, base, bytes = c.where(k.in)
	}
	set(&l.key, k.what.Key())
	set(&l.elems, k.what.Elems)
	set(&l.off, off)
	set(&l.base, base)
	set(&l.bytes, bytes)
	c.v.block[c.rank].calls[c.round&1] = uint32(k.number)
	k.per = k.chunkElems()
	if off < 0 {
		k.stageIn(l)
	}
	k.stage = published
	c.publish(l)
}

// gives reports whether peers read memory of this rank.
func (k *call) gives() bool {
	return k.what.Kind != comm.Barrier && (k.what.Kind != comm.Broadcast || k.what.Root == k.c.rank)
}

// step continues after all ranks have reached the round. over reports that the call is complete on this rank.
func (k *call) step() (over bool, err error) {
	switch k.stage {
	case published:
		k.met = true
		return k.meet()
	case staged:
		return k.exchange(), nil
	case reduced:
		k.collect()
		return k.nextChunk(), nil
	}
	return true, nil
}

// meet compares the calls, then chooses the path from the announcements of all ranks, so that all choose the same.
func (k *call) meet() (over bool, err error) {
	c := k.c
	if err := k.mismatch(); err != nil {
		return true, err
	}
	if k.what.Elems == 0 {
		return true, nil
	}
	all := true
	for r := range c.ptrs {
		l := k.line(r)
		c.ptrs[r].direct = nil
		if l.off >= 0 {
			if c.ptrs[r].direct, err = c.reach(r, l); err != nil {
				return true, err
			}
			k.shared = true
		} else if k.what.Kind != comm.Broadcast || r == k.what.Root {
			all = false
		}
	}
	switch {
	case k.small:
		k.consume(0, k.what.Elems)
		return true, nil
	case all:
		k.whole()
		k.stage = last
		c.publish(c.next())
		return false, nil
	}
	k.stage = staged
	return k.exchange(), nil
}

// mismatch finds a rank with a different call.
func (k *call) mismatch() error {
	c := k.c
	key := k.what.Key()
	for r := range c.size {
		if l := k.line(r); l.key != key || l.elems != k.what.Elems {
			return &comm.MismatchError{Rank: c.rank, Peer: r, Mine: k.what.Number(k.number), Its: l.call().Number(int64(c.v.block[r].calls[c.round&1]))}
		}
	}
	return nil
}

// line returns the line of rank r for this round.
func (k *call) line(r int) *line { return &k.c.v.block[r].line[k.c.round&1] }

// exchange processes a chunk that is in all slots.
func (k *call) exchange() (over bool) {
	from, n := k.span()
	if k.what.Kind != comm.AllReduce {
		k.consume(from, n)
		return k.nextChunk()
	}
	k.reducePart(from, n)
	k.stage = reduced
	l := k.c.next()
	atomic.StoreUint32(&l.slot, k.slot)
	k.c.publish(l)
	return false
}

// nextChunk stages the next chunk, or closes the call.
func (k *call) nextChunk() (over bool) {
	c := k.c
	k.chunk++
	if k.chunk*k.per < k.length() {
		l := c.next()
		if c.ptrs[c.rank].direct == nil {
			k.stageIn(l)
		}
		k.stage = staged
		c.publish(l)
		return false
	}
	if k.shared && k.what.Kind != comm.AllReduce { // an AllReduce has already had its last round
		k.stage = last
		c.publish(c.next())
		return false
	}
	return true
}

// span returns the range of elements of the chunk, within a part if the call has parts.
func (k *call) span() (from, n int64) {
	from = k.chunk * k.per
	return from, min(k.per, k.length()-from)
}

// source returns the data of rank r for the current chunk, which begins at element from; part selects the part if the call has parts.
func (k *call) source(r int, from, n int64, part int) unsafe.Pointer {
	c, size := k.c, int64(k.what.DType.Size())
	if p := c.ptrs[r].direct; p != nil && !k.small {
		return unsafe.Add(p, (int64(part)*k.length()+from)*size)
	}
	mem := c.v.slotMem(r, atomic.LoadUint32(&k.line(r).slot))
	return unsafe.Pointer(&mem[int64(part)*n*size])
}
