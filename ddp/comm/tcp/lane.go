package tcp

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [lanes]
//
// A message shares the connection with the collectives, and must not hold them up, whatever the order of calls on the two ranks. So its data travel only
// when the receiver has made its call:
//
//	sender                          receiver
//	ask: dtype, elements   ───►     remembers it, or has made its call
//	                       ◄───     come: dtype, elements; both sides compare
//	data, piece by piece   ───►
//
// A collective can also be in the way of a message: pieces of a call that this rank has not made stay unread, and the message is behind them. Then the
// driver reads on, keeps these pieces in memory (park), and takes out the frames of lanes. A peer is at most one call ahead, since no call ends
// without a piece from this rank.

// lane is one direction of exchange with one peer. Its messages are exchanged one after another.
type lane struct {
	first, last *call // in order of issue
	number      uint32
	state       laneState
	off         int    // bytes of the data that have been sent or have come
	asked       bool   // the peer has sent ask; what it sends:
	key, elems  uint64 // of the peer's call
	theirs      uint32 // number of its message
}

type laneState uint8

const (
	laneIdle    laneState = iota // the first call has not been announced
	laneWaiting                  // for the peer's call
	laneMoving                   // data
)

// give and take are the directions.
const (
	give = iota
	take
)

// lively reports whether this rank waits for a message to or from the peer.
func (p *peer) lively() bool { return p.lanes[give].first != nil || p.lanes[take].first != nil }

// collect hands new messages to their lanes.
func (c *Comm) collect() {
	if c.posted.Load() == 0 {
		return
	}
	c.mu.Lock()
	k := c.fresh
	c.fresh, c.freshLast = nil, nil
	c.posted.Store(0)
	c.mu.Unlock()
	for k != nil {
		after := k.after
		k.after = nil
		p := c.peers[k.what.Root]
		l := &p.lanes[direction(k)]
		if l.last == nil {
			l.first = k
		} else {
			l.last.after = k
		}
		l.last = k
		c.messages++
		c.watchOver(k)
		k = after
	}
	for _, p := range c.others {
		c.nudge(p)
	}
}

func direction(k *call) int {
	if k.what.Kind == comm.Send {
		return give
	}
	return take
}

// nudge announces the first message of each lane of a peer, if that has not happened.
func (c *Comm) nudge(p *peer) {
	l := &p.lanes[give]
	if k := l.first; k != nil && l.state == laneIdle {
		l.state = laneWaiting
		l.number++
		k.number = int64(l.number)
		c.say(p, k, l.number, laneAsk)
	}
	l = &p.lanes[take]
	if k := l.first; k != nil && l.state == laneIdle && l.asked {
		l.asked = false
		l.number = l.theirs
		k.number = int64(l.number)
		c.say(p, k, l.number, laneCome)
		c.meetLane(p, take)
	}
}

// say has a frame without data sent.
func (c *Comm) say(p *peer, k *call, number uint32, kind uint16) {
	p.control = append(p.control, header{number: number, key: k.key, elems: uint64(k.what.Elems), phase: phaseLane, algorithm: kind})
	c.owed++
}

// meetLane compares the two calls of a message.
func (c *Comm) meetLane(p *peer, dir int) {
	l := &p.lanes[dir]
	k := l.first
	c.arrive(k)
	its := comm.CallOf(l.key, int64(l.elems))
	if its.DType != k.what.DType || its.Elems != k.what.Elems {
		c.endMessage(p, dir, &comm.MismatchError{Rank: c.jobs[c.rank], Peer: p.job, Mine: k.what.Number(int64(l.number)), Its: its.Number(int64(l.number))})
		return
	}
	l.state, l.off = laneMoving, 0
	if k.what.Elems == 0 {
		c.endMessage(p, dir, nil)
	}
}

// endMessage completes the first call of a lane.
func (c *Comm) endMessage(p *peer, dir int, err error) {
	l := &p.lanes[dir]
	k := l.first
	if l.first = k.after; l.first == nil {
		l.last = nil
	}
	k.after = nil
	l.state, l.off = laneIdle, 0
	c.messages--
	c.finish(k, err)
}

// fillLane adds what a batch can carry of the lanes of a peer: answers, and a piece of data.
func (c *Comm) fillLane(l *line, add func(header, address)) {
	p := l.p
	n := 0
	for ; n < len(p.control) && n < maxBatch-2; n++ {
		add(p.control[n], 0)
	}
	if n > 0 {
		p.control = p.control[:copy(p.control, p.control[n:])]
		l.said = n
	}
	s := &p.lanes[give]
	if s.state != laneMoving {
		return
	}
	mem := s.first.in.Host()
	n = min(len(mem)-s.off, pieceBytes)
	add(header{length: uint32(n), number: s.number, key: s.first.key, elems: uint64(s.first.what.Elems), phase: phaseLane, algorithm: laneData,
		piece: uint32(s.off / pieceBytes)}, addressOf(mem[s.off:]))
	l.data = n
}

// laneSent counts data that are with the kernel.
func (c *Comm) laneSent(p *peer, n int) {
	s := &p.lanes[give]
	if s.off += n; s.off == len(s.first.in.Host()) {
		c.endMessage(p, give, nil)
	}
}

// acceptLane handles the header of a frame of a lane.
func (c *Comm) acceptLane(l *line) error {
	l.begun = true
	h := &l.h
	if h.algorithm != laneData {
		return nil
	}
	t := &l.p.lanes[take]
	if t.state != laneMoving || h.number != t.number || h.length == 0 || int64(h.length) > t.first.in.Bytes()-int64(t.off) {
		return c.gone(l.p, "it sent data of a message that was not asked for: "+another)
	}
	l.dst = addressOf(t.first.in.Host()[t.off:])
	return nil
}

// finishLane handles a complete frame of a lane.
func (c *Comm) finishLane(l *line) error {
	h, p := &l.h, l.p
	g, t := &p.lanes[give], &p.lanes[take]
	switch h.algorithm {
	case laneAsk:
		if t.asked {
			return c.gone(p, "it sent two messages at once: "+another)
		}
		t.asked, t.key, t.elems, t.theirs = true, h.key, h.elems, h.number
		c.nudge(p)
	case laneCome:
		if g.state != laneWaiting || h.number != g.number {
			return c.gone(p, "it asked for a message that was not offered: "+another)
		}
		g.key, g.elems = h.key, h.elems
		c.meetLane(p, give)
		c.nudge(p)
	case laneData:
		if t.off += int(h.length); t.off == len(t.first.in.Host()) {
			c.endMessage(p, take, nil)
			c.nudge(p)
		}
	}
	return nil
}

var errParked = errors.New("parked")

// park reads on behind a frame whose turn has not come. ahead holds its payload and the frames after it, of which those of lanes are taken out.
func (c *Comm) park(l *line) (moved bool, err error) {
	at := int(l.h.length) // begin of the first frame in ahead that has not been looked at
	held := l.h
	for err == nil {
		if err = c.readAhead(l, at+headerBytes); err != nil {
			break
		}
		var h header
		if err = h.parse((*[headerBytes]byte)(l.ahead[at:])); err != nil {
			return moved, c.gone(l.p, "it sent "+err.Error())
		}
		end := at + headerBytes + int(h.length)
		if h.phase != phaseLane {
			if h.phase == phaseControl && h.algorithm == controlBye {
				return moved, c.left(l.p)
			}
			at = end
			continue
		}
		if err = c.readAhead(l, end); err != nil {
			break
		}
		l.h = h
		if err := c.acceptLane(l); err != nil {
			return moved, err
		}
		if h.length > 0 {
			copy(l.dst.bytes(int(h.length)), l.ahead[at+headerBytes:end])
		}
		err := c.finishLane(l)
		l.h, l.known, l.begun, l.dst, l.rest = held, true, false, 0, 0
		l.ahead = append(l.ahead[:at], l.ahead[end:]...)
		if moved = true; err != nil {
			return moved, err
		}
	}
	if errors.Is(err, errParked) {
		err = nil
	}
	return moved, err
}

// readAhead makes sure that ahead has n bytes; errParked if they have not come.
func (c *Comm) readAhead(l *line, n int) error {
	for len(l.ahead) < n {
		if l.dry && !c.looking {
			return errParked
		}
		var b [64 << 10]byte
		asked := min(n-len(l.ahead), len(b))
		got, e := receiveInto(l.fd, unsafe.Pointer(&b[0]), asked)
		k, err := c.input(l, got, syscall.Errno(e), asked)
		if err != nil {
			return err
		}
		if k == 0 {
			return errParked
		}
		l.ahead = append(l.ahead, b[:k]...)
	}
	return nil
}
