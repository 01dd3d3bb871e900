package tcp

import (
	"syscall"
	"unsafe"
)

// push sends a batch on a link, or what is left of one, and reports whether anything was sent. One is enough for a pass: other peers wait too.
func (c *Comm) push(l *line) (moved bool) {
	if l.left == 0 && (l.sendErr != 0 || !c.fill(l)) {
		return false
	}
	if l.stuck && !c.looking {
		return false // poll tells when it is worth another call
	}
	n, e := l.batch.send(l.fd)
	switch e {
	case 0:
	case syscall.EAGAIN:
		l.stuck = true
		return false
	default:
		// The reason may be on its way in: a peer that closed in order has said so.
		l.sendErr, l.left = e, 0
		return true
	}
	c.wire.Add(int64(n))
	l.left -= n
	if l.stuck = l.left > 0; l.stuck {
		l.batch.take(n)
		return true
	}
	c.sentBatch(l)
	return true
}

// fill makes the next batch of a link.
func (c *Comm) fill(l *line) bool {
	l.batch.reset()
	l.opening = 0
	frames := 0
	add := func(h header, mem address) {
		b := &l.heads[frames]
		h.put(b)
		l.batch.add(address(unsafe.Pointer(b)), headerBytes)
		if h.length > 0 {
			l.batch.add(mem, int(h.length))
		}
		l.left += headerBytes + int(h.length)
		frames++
	}
	if l.index == 0 {
		c.fillLane(l, add)
	}
	for k := c.active; k != nil && frames < maxBatch && l.left < sendBytes; {
		p := l.p
		if l.next >= min(p.may, p.outN) || k.odd != nil && l.next > 0 {
			break
		}
		s, mem, n := l.from.piece(p.out)
		add(header{length: uint32(n), number: uint32(k.number), key: k.key, elems: uint64(k.what.Elems), phase: s.phase, algorithm: c.plan.algorithm,
			piece: uint32(l.next)}, mem)
		if l.next == 0 {
			l.opening = l.left
		}
		for range p.lines {
			if l.from.span < len(p.out) {
				l.from.next(p.out)
			}
		}
		l.next += len(p.lines)
		l.pieces++
	}
	l.size = l.left
	return frames > 0
}

// detach takes the rest of a batch of a call that failed out of the caller's memory. The worker sends it: the peer needs whole frames. It reports false
// while the first piece, which tells the peer of the call, is not yet with the kernel.
func (c *Comm) detach(l *line) bool {
	if l.left == 0 || l.size-l.left < l.opening {
		return false
	}
	rest := make([]byte, 0, l.left)
	for l.batch.at < l.batch.n {
		mem, n := l.batch.front()
		rest = append(rest, mem.bytes(n)...)
		l.batch.take(n)
	}
	l.batch.reset()
	l.batch.add(addressOf(rest), len(rest))
	l.spare = rest
	l.p.outDone += l.pieces
	l.pieces = 0
	l.said++
	c.owed++
	return true
}

// sentBatch does what follows from a batch being with the kernel.
func (c *Comm) sentBatch(l *line) {
	if l.pieces > 0 {
		l.done += l.pieces
		l.p.outDone += l.pieces
		c.outLeft -= l.pieces
		l.pieces = 0
		c.dirty = true
	}
	c.owed, l.said, l.spare = c.owed-l.said, 0, nil
	if l.data > 0 {
		n := l.data
		l.data = 0
		c.laneSent(l.p, n)
	}
}
