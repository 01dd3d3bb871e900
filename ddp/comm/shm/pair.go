package shm

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// lane is one direction of exchange with one peer. Lanes are independent of each other and of the collectives.
type lane struct {
	peer int
	send bool
}

// laneState executes the calls of a lane one after another, in a goroutine that starts with the first call.
type laneState struct {
	lane
	c      *Comm
	pair   *pair
	wake   chan struct{}
	queue  []*call // under Comm.mu
	n      uint64  // messages started
	chunks uint64  // moved through the ring so far
	vigil  vigil
}

// post queues a Send or a Recv.
func (c *Comm) post(ctx context.Context, what comm.Call, m comm.Mem, id lane) (comm.Handle, error) {
	if err := c.check(ctx, what, m, m); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	l := c.lanes[id]
	if l == nil {
		l = &laneState{lane: id, c: c, pair: c.v.pair(id.peer, c.rank), wake: make(chan struct{}, 1)}
		if id.send {
			l.pair = c.v.pair(c.rank, id.peer)
		}
		if c.lanes == nil {
			c.lanes = map[lane]*laneState{}
		}
		c.lanes[id] = l
		c.wg.Add(1)
		go l.work()
	}
	c.calls++
	k := &call{c: c, what: what, in: m, out: m, ctx: ctx, number: c.calls, issued: time.Since(c.base), lane: l}
	l.queue = append(l.queue, k)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return k, nil
}

func (l *laneState) work() {
	c := l.c
	defer c.wg.Done()
	for range l.wake {
		c.mu.Lock()
		for len(l.queue) > 0 {
			k := l.queue[0]
			c.mu.Unlock()
			err := l.run(k)
			c.mu.Lock()
			l.queue = l.queue[1:]
			k.finish(err)
		}
		c.mu.Unlock()
	}
}

// run executes one message. Both sides announce theirs, compare, move the data by the shortest path, and finish when both are done.
func (l *laneState) run(k *call) error {
	c, p := l.c, l.pair
	mine, its, me, peer := &p.recv, &p.send, 1, 0
	if l.send {
		mine, its, me, peer = &p.send, &p.recv, 0, 1
	}
	l.n++
	mine.key, mine.elems, mine.number = k.what.Key(), k.what.Elems, uint32(k.number)
	mine.off, mine.base, mine.bytes = c.where(k.in)
	atomic.StoreUint64(&mine.round, l.n)
	p.ring()
	if err := l.await(k, &its.round, l.n); err != nil {
		return err
	}
	k.arrived, k.met = time.Since(c.base), true
	var verdict error
	if its.elems != k.what.Elems || its.call().DType != k.what.DType {
		verdict = &comm.MismatchError{Rank: c.rank, Peer: l.peer, Mine: k.what.Number(k.number), Its: its.call().Number(int64(its.number))}
	} else if err := l.transfer(k, its); err != nil {
		return err
	}
	atomic.StoreUint64(&p.prog[me].done, l.n)
	p.ring()
	if err := l.await(k, &p.prog[peer].done, l.n); err != nil {
		return err
	}
	return verdict
}

// transfer moves the data: the receiver reads the sender's memory if that is shared, otherwise the sender writes the receiver's if that is
// shared, otherwise the data go through the ring.
func (l *laneState) transfer(k *call, its *line) error {
	c := l.c
	bytes := k.what.Elems * int64(k.what.DType.Size())
	if bytes == 0 {
		return nil
	}
	own, _, _ := c.where(k.in)
	giver, taker := its.off, own
	if l.send {
		giver, taker = own, its.off
	}
	switch {
	case giver < 0 && taker < 0:
		return l.ring(k)
	case (giver >= 0) != l.send: // the peer's memory is shared and this side moves
		mem, err := c.heap.mapped(c.files.heap, its.base, its.bytes)
		if err != nil {
			return c.breakWith(err)
		}
		at := mem[its.off-its.base:]
		if l.send {
			move(at, unsafe.Pointer(&k.in.Host()[0]), bytes)
			k.wire += bytes
		} else {
			move(k.out.Host(), unsafe.Pointer(&at[0]), bytes)
		}
	}
	return nil
}

// ring moves the data through the pair's two halves.
func (l *laneState) ring(k *call) error {
	c, p := l.c, l.pair
	mem := k.in.Host()
	from, to := l.peer, c.rank
	if l.send {
		from, to = to, from
		if err := reserve(c.files.control, c.v.ring(from, to), 2*pairBytes); err != nil {
			return c.breakWith(spaceError(c.files.control, 2*pairBytes, err))
		}
	}
	for len(mem) > 0 {
		half := c.v.ringMem(from, to, int(l.chunks&1))
		n := min(len(mem), pairBytes)
		if l.send {
			if l.chunks >= 2 { // the half must be empty
				if err := l.await(k, &p.prog[1].chunks, l.chunks-1); err != nil {
					return err
				}
			}
			copy(half, mem[:n])
			k.wire += int64(n)
		} else {
			if err := l.await(k, &p.prog[0].chunks, l.chunks+1); err != nil {
				return err
			}
			copy(mem[:n], half)
		}
		l.chunks++
		if l.send {
			atomic.StoreUint64(&p.prog[0].chunks, l.chunks)
		} else {
			atomic.StoreUint64(&p.prog[1].chunks, l.chunks)
		}
		p.bell.ring()
		mem = mem[n:]
	}
	return nil
}

// await blocks until the peer's word has reached n.
func (l *laneState) await(k *call, word *uint64, n uint64) error {
	there := func() bool { return atomic.LoadUint64(word) >= n }
	c := l.c
	if there() || !c.crowded && lookFor(lookWork, there) {
		return nil
	}
	now := time.Now()
	l.vigil.over(l.vigil.round+1, now)
	t := trouble{what: k.what, number: k.number, ctx: k.ctx, vigil: &l.vigil, checked: now, missing: func() []int { return []int{l.peer} }}
	_, err := c.sleep(&l.pair.bell, there, nil, &t)
	return err
}
