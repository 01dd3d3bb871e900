package tcp

import (
	"syscall"
	"unsafe"
)

// push sends what can be sent on a link, and reports whether anything was.
func (c *Comm) push(l *line) (moved bool) {
	for {
		if l.left == 0 && (l.sendErr != 0 || !c.fill(l)) {
			return moved
		}
		if l.stuck && !c.looking {
			return moved // poll tells when it is worth another call
		}
		n, e := l.batch.send(l.fd)
		switch e {
		case 0:
		case syscall.EAGAIN:
			l.stuck = true
			return moved
		default:
			// The reason may be on its way in: a peer that closed in order has said so.
			l.sendErr, l.left = e, 0
			return true
		}
		moved = true
		c.wire.Add(int64(n))
		l.left -= n
		if l.left > 0 {
			l.batch.take(n)
			l.stuck = true
			return moved
		}
		c.sentBatch(l)
	}
}

// fill makes the next batch of a link.
func (c *Comm) fill(l *line) bool {
	l.batch.reset()
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
		for range p.lines {
			if l.from.span < len(p.out) {
				l.from.next(p.out)
			}
		}
		l.next += len(p.lines)
		l.pieces++
	}
	return frames > 0
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
	c.owed, l.said = c.owed-l.said, 0
	if l.data > 0 {
		n := l.data
		l.data = 0
		c.laneSent(l.p, n)
	}
}
