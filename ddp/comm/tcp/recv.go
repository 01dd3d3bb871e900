package tcp

import (
	"fmt"
	"syscall"

	"github.com/gotrain/gotrain/ddp/comm"
)

const another = "it runs another version of the program"

// wants reports whether the driver has a use for the next frame of a link.
func (c *Comm) wants(l *line) bool {
	if l.sendErr != 0 || l.index == 0 && l.p.lively() {
		return true
	}
	return c.active != nil && l.p.due() == l
}

// pull reads what is there for a link and can be used, up to the end of a frame: other peers wait too.
func (c *Comm) pull(l *line) (moved bool, err error) {
	for {
		switch {
		case l.begun && l.rest > 0:
			n, err := c.readPayload(l)
			if n == 0 {
				return moved, err
			}
			if moved = true; l.rest > 0 {
				return true, nil
			}
		case l.begun:
			return true, c.finishFrame(l)
		case !l.known:
			if !c.wants(l) {
				return moved, nil
			}
			if l.bye {
				return moved, c.left(l.p)
			}
			if ok, err := c.readHeader(l); !ok {
				return moved, err
			}
			moved = true
		default:
			ok, err := c.accept(l)
			if err != nil {
				return moved, err
			}
			if !ok { // its turn has not come
				if l.index > 0 || !l.p.lively() {
					return moved, nil
				}
				more, err := c.park(l)
				return moved || more, err
			}
			moved = true
		}
	}
}

// input handles the result of a system call that reads: n bytes, or nothing for now (0), or the end.
func (c *Comm) input(l *line, n int, e syscall.Errno, asked int) (int, error) {
	switch {
	case e == syscall.EAGAIN:
		l.dry = true
		return 0, nil
	case e != 0:
		return 0, c.gone(l.p, "the connection broke: "+e.Error())
	case n == 0:
		why := "its process ended or was killed"
		if l.sendErr != 0 {
			why = "the connection broke: " + l.sendErr.Error()
		}
		return 0, c.gone(l.p, why)
	}
	l.dry = n < asked
	l.p.rx += uint64(n)
	return n, nil
}

// readHeader reads a header, and as much of the payload that should follow as is there, in one call. If another frame comes, what was read behind the
// header is kept in ahead.
func (c *Comm) readHeader(l *line) (ok bool, err error) {
	if len(l.ahead) > 0 {
		n := copy(l.head[l.have:], l.ahead)
		l.ahead = l.ahead[n:]
		l.have += n
		if l.have < headerBytes {
			return true, nil // go on with the socket
		}
		return true, c.parse(l)
	}
	if l.dry && !c.looking {
		return false, nil
	}
	missing := headerBytes - l.have
	l.want.reset()
	l.want.add(addressOf(l.head[l.have:]), missing)
	dst, length := c.guess(l)
	if length > 0 {
		l.want.add(dst, length)
	}
	n, e := l.want.receive(l.fd)
	if n, err = c.input(l, n, e, missing+length); n == 0 {
		return false, err
	}
	if n < missing {
		l.have += n
		return true, nil
	}
	extra := n - missing
	l.have = headerBytes
	if err := c.parse(l); err != nil {
		return true, err
	}
	if extra > 0 {
		if c.expected(l) && int(l.h.length) == length {
			if _, err := c.accept(l); err != nil {
				return true, err
			}
			l.dst, l.rest = l.dst+address(extra), l.rest-extra
		} else {
			l.ahead = append(l.ahead, dst.bytes(extra)...)
		}
	}
	return true, nil
}

func (c *Comm) parse(l *line) error {
	l.have = 0
	if err := l.h.parse(&l.head); err != nil {
		return c.gone(l.p, "it sent "+err.Error())
	}
	l.known = true
	return nil
}

// guess is where the payload of the next frame belongs if it is the one that the call waits for, and if nothing in that memory is needed until then.
func (c *Comm) guess(l *line) (address, int) {
	p := l.p
	if c.active == nil || c.active.odd != nil || p.due() != l {
		return 0, 0
	}
	s, mem, n := p.at.piece(p.in)
	switch {
	case s.staged:
		return p.stage, n
	case s.free || c.plan.algorithm == direct && p.sent(p.at.off/pieceBytes): // of a mesh: what comes back is what went there
		return mem, n
	}
	return 0, 0
}

// expected reports whether the header of a link is that of the piece that the call waits for.
func (c *Comm) expected(l *line) bool {
	k, p := c.active, l.p
	if k == nil || k.odd != nil || p.due() != l {
		return false
	}
	h := &l.h
	if h.number != uint32(k.number) || h.key != k.key || h.elems != uint64(k.what.Elems) || h.piece != uint32(p.got) || h.algorithm != c.plan.algorithm {
		return false
	}
	s, _, n := p.at.piece(p.in)
	return h.phase == s.phase && int(h.length) == n
}

// accept decides what becomes of the frame whose header is known. It returns false if its turn has not come.
func (c *Comm) accept(l *line) (bool, error) {
	h, p, k := &l.h, l.p, c.active
	l.dst, l.rest = 0, int(h.length)
	switch h.phase {
	case phaseLane:
		return true, c.acceptLane(l)
	case phaseControl:
		l.begun = true
		l.text = nil
		if h.algorithm == controlAbort && h.length > 0 {
			l.text = make([]byte, h.length)
			l.dst = addressOf(l.text)
		}
		return true, nil
	}
	switch d := int32(h.number - uint32(c.number)); {
	case d > 0:
		return false, nil // back-pressure
	case d < 0 || k == nil:
		l.begun = true // of a call that ended with a mismatch
		return true, nil
	}
	if !p.arrived {
		p.arrived = true
		if c.arrived++; c.arrived == len(c.others) {
			c.arrive(k)
		}
	}
	switch {
	case h.key != k.key || h.elems != uint64(k.what.Elems):
		if k.odd == nil {
			k.odd = &comm.MismatchError{Rank: c.jobs[c.rank], Peer: p.job, Mine: k.what.Number(k.number),
				Its: comm.CallOf(h.key, int64(h.elems)).Number(k.number)}
		}
		l.begun = true
	case k.odd != nil:
		l.begun = true
	case p.due() != l:
		return false, nil
	case !c.expected(l):
		return false, c.gone(p, fmt.Sprintf("it sent piece %d (phase %d, algorithm %d, %d bytes) of %s where piece %d was due: "+another,
			h.piece, h.phase, h.algorithm, h.length, k.what.Number(k.number), p.got))
	default:
		l.begun = true
		s, mem, _ := p.at.piece(p.in)
		if l.dst = mem; s.staged {
			l.dst = p.stage
		}
	}
	return true, nil
}

// readPayload reads a part of the payload that has begun.
func (c *Comm) readPayload(l *line) (int, error) {
	dst, n := l.dst, l.rest
	if dst == 0 {
		dst, n = addressOf(c.waste), min(n, len(c.waste))
	}
	if len(l.ahead) > 0 {
		n = copy(dst.bytes(n), l.ahead)
		if l.ahead = l.ahead[n:]; len(l.ahead) == 0 {
			l.ahead = nil
		}
	} else {
		if l.dry && !c.looking {
			return 0, nil
		}
		got, e := receiveInto(l.fd, dst.pointer(), n)
		var err error
		if n, err = c.input(l, got, e, n); n == 0 {
			return 0, err
		}
	}
	if l.dst != 0 {
		l.dst += address(n)
	}
	l.rest -= n
	return n, nil
}

// finishFrame does what follows from a frame being complete.
func (c *Comm) finishFrame(l *line) error {
	h, p := &l.h, l.p
	used := l.dst != 0
	l.known, l.begun, l.dst = false, false, 0
	switch h.phase {
	case phaseLane:
		return c.finishLane(l)
	case phaseControl:
		if h.algorithm == controlBye {
			l.bye = true
			return nil
		}
		return c.aborted(int(h.key), string(l.text))
	}
	k := c.active
	if k == nil || k.odd != nil || h.number != uint32(k.number) || !h.mine(k.what) || !used && h.length > 0 {
		return nil // thrown away
	}
	s, _, _ := p.at.piece(p.in)
	if s.staged {
		p.full, c.dirty = true, true
		return nil
	}
	c.consumed(p)
	if s.n > 0 {
		for _, q := range p.then {
			q.may++
		}
	}
	return nil
}

// consumed counts the piece that was due.
func (c *Comm) consumed(p *peer) {
	p.got++
	p.at.next(p.in)
	c.inLeft--
}
