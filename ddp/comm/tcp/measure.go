package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
	"golang.org/x/sys/unix"
)

// Note [measurement]
//
// Before the first frame every rank measures its connection to the next rank, while the previous one measures that to it: short messages there and back,
// then blocks of data that the other end confirms. On the wire are messages of 8 bytes: what it is, and the length of the block that follows. All is over
// in some 30 ms. Blocks are sent for ten milliseconds, at least two of them: the fastest counts, since anything else that the machine does can only make
// one slower. Each takes a round trip more than its bytes.
//
// Where more ranks of the group than processors are on one machine, messages to several peers do not overlap: each makes another rank run. So there a
// further peer costs as much as a message.

const (
	pings      = 20
	warmUp     = 4 // pings that do not count
	firstBlock = 512 << 10
	lastBlock  = 4 << 20
	blockTime  = 10 * time.Millisecond // of all
	minBlocks  = 2
	maxBlocks  = 8
)

const (
	wordPing = 1 + iota
	wordPong
	wordBlock // and its bytes
	wordLast  // the same, and no block follows it
	wordTaken
)

// probe is one connection while it is measured.
type probe struct {
	l     *line
	words []byte // to send
	later []byte // to send after the block
	block int    // bytes of the block that are left to send
	head  [8]byte
	have  int
	takes int  // bytes of a block that are to come
	last  bool // the block that comes is the last one
	taken bool // it has come
}

// meter is the measurement of one rank.
type meter struct {
	c          *Comm
	next, prev *probe
	probes     []*probe
	mem        []byte // what blocks consist of, and where they go
	begun      time.Time
	size       int
	trips      []time.Duration
	calls      []time.Duration // of sending a word
	blocks     []float64       // bytes a second
	started    time.Time       // the first block
	closing    bool            // the last block is on its way
	done       bool
}

func (c *Comm) measure(ctx context.Context) (link.Link, error) {
	whole, mem, err := mapMemory(2 * pieceBytes)
	if err != nil {
		return link.Link{}, err
	}
	defer unmapMemory(whole)
	m := &meter{c: c, mem: mem, next: &probe{l: c.ahead[0].lines[0]}}
	m.prev, m.probes = m.next, []*probe{m.next}
	if c.size > 2 {
		m.prev = &probe{l: c.behind[0].lines[0]}
		m.probes = append(m.probes, m.prev)
	}
	if err := m.run(ctx); err != nil {
		return link.Link{}, err
	}
	slices.Sort(m.calls)
	l := link.Link{Latency: m.latency(), PerPeer: m.calls[len(m.calls)/2], Bandwidth: slices.Max(m.blocks), Reduce: additions(mem)}
	if c.crowd() {
		l.PerPeer = max(l.PerPeer, l.Latency)
	}
	return l, l.Valid()
}

// latency is half of a typical round trip.
func (m *meter) latency() time.Duration { return m.trips[len(m.trips)/2] / 2 }

// crowd reports whether more ranks of the group are on this machine than it has processors.
func (c *Comm) crowd() bool {
	members := c.control.Roster().Members
	mine := 0
	for _, job := range c.jobs {
		if members[job].Machine == members[c.jobs[c.rank]].Machine {
			mine++
		}
	}
	return mine > max(processorsHere(), runtime.NumCPU())
}

// additions is the time to add a byte.
func additions(mem []byte) float64 {
	src := []unsafe.Pointer{unsafe.Pointer(&mem[0]), unsafe.Pointer(&mem[pieceBytes])}
	best := time.Duration(1 << 62)
	for range 5 {
		begin := time.Now()
		reduce.Many(comm.Sum, npu.F32, pieceBytes/4, src[0], nil, src)
		best = min(best, time.Since(begin))
	}
	return best.Seconds() / pieceBytes
}

func (m *meter) run(ctx context.Context) error {
	here := 0
	roster := m.c.control.Roster().Members
	for _, member := range roster {
		if member.Machine == roster[m.c.control.Rank()].Machine {
			here++
		}
	}
	look := here <= runtime.NumCPU() || runtime.NumCPU() == 1 // one processor: that of a bound rank
	m.ping()
	var idle time.Time
	for !m.done || !m.prev.taken || m.unsent() {
		moved := false
		for _, p := range m.probes {
			out, err := m.push(p)
			if err != nil {
				return err
			}
			in, err := m.pull(p)
			if err != nil {
				return err
			}
			moved = moved || out || in
		}
		if moved {
			idle = time.Time{}
			continue
		}
		if now := time.Now(); idle.IsZero() {
			idle = now
		} else if !look || now.Sub(idle) > lookFor {
			if err := m.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *meter) unsent() bool {
	return slices.ContainsFunc(m.probes, func(p *probe) bool { return len(p.words)+len(p.later)+p.block > 0 })
}

func (m *meter) wait(ctx context.Context) error {
	var fds []unix.PollFd
	for _, p := range m.probes {
		fd := unix.PollFd{Fd: int32(p.l.fd), Events: unix.POLLIN}
		if len(p.words)+p.block > 0 {
			fd.Events |= unix.POLLOUT
		}
		fds = append(fds, fd)
	}
	poll(fds, int(slice/time.Millisecond))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return m.c.control.Err()
}

// say appends a word to what is sent.
func (p *probe) say(word, n int) {
	to := &p.words
	if p.block > 0 {
		to = &p.later
	}
	*to = binary.LittleEndian.AppendUint32(*to, uint32(word))
	*to = binary.LittleEndian.AppendUint32(*to, uint32(n))
}

func (m *meter) ping() {
	m.begun = time.Now()
	m.next.say(wordPing, 0)
}

// sendBlock sends the next block, as large as the rate of those before allows.
func (m *meter) sendBlock() {
	n := firstBlock
	if len(m.blocks) > 0 {
		n = min(max(int(slices.Max(m.blocks)*blockTime.Seconds()/minBlocks), firstBlock), lastBlock)
	}
	word := wordBlock
	m.begun, m.size = time.Now(), n
	if len(m.blocks) == 0 {
		m.started = m.begun
	} else if k := len(m.blocks) + 1; k >= minBlocks && (k == maxBlocks || m.begun.Sub(m.started) >= blockTime/2) {
		word, m.closing = wordLast, true
	}
	m.next.say(word, n)
	m.next.block = n
}

func (m *meter) push(p *probe) (moved bool, err error) {
	for len(p.words) > 0 || p.block > 0 {
		at, n := unsafe.Pointer(&m.mem[0]), min(p.block, len(m.mem))
		if len(p.words) > 0 {
			at, n = unsafe.Pointer(&p.words[0]), len(p.words)
		}
		begin := time.Now()
		k, e := sendFrom(p.l.fd, at, n)
		if e == syscall.EAGAIN {
			return moved, nil
		}
		if e != 0 {
			return moved, e
		}
		moved = true
		if len(p.words) > 0 {
			m.calls = append(m.calls, time.Since(begin))
			p.words = p.words[:copy(p.words, p.words[k:])]
			continue
		}
		if p.block -= k; p.block == 0 {
			p.words, p.later = append(p.words, p.later...), p.later[:0]
		}
	}
	return moved, nil
}

func (m *meter) pull(p *probe) (moved bool, err error) {
	for !m.over(p) { // what follows then is a frame of the group
		at, n := unsafe.Pointer(&m.mem[0]), min(p.takes, len(m.mem))
		if p.takes == 0 {
			at, n = unsafe.Pointer(&p.head[p.have]), len(p.head)-p.have
		}
		k, e := receiveInto(p.l.fd, at, n)
		switch {
		case e == syscall.EAGAIN:
			return moved, nil
		case e != 0:
			return moved, e
		case k == 0:
			return moved, errors.New("it closed the connection")
		}
		moved = true
		if p.takes > 0 {
			if p.takes -= k; p.takes == 0 {
				p.taken = p.last
				p.say(wordTaken, 0)
			}
		} else if p.have += k; p.have == len(p.head) {
			p.have = 0
			if err := m.heard(p, binary.LittleEndian.Uint32(p.head[:]), binary.LittleEndian.Uint32(p.head[4:])); err != nil {
				return moved, err
			}
		}
	}
	return moved, nil
}

// over reports whether nothing more of the measurement comes from a peer.
func (m *meter) over(p *probe) bool {
	return (p != m.prev || p.taken) && (p != m.next || m.done)
}

// heard handles a word.
func (m *meter) heard(p *probe, word, n uint32) error {
	now := time.Now()
	switch {
	case word == wordPing && p == m.prev:
		p.say(wordPong, 0)
	case (word == wordBlock || word == wordLast) && p == m.prev && n > 0 && n <= lastBlock && !p.taken:
		p.takes, p.last = int(n), word == wordLast
	case word == wordPong && p == m.next && m.size == 0:
		m.trips = append(m.trips, now.Sub(m.begun))
		if len(m.trips) < pings {
			m.ping()
			break
		}
		m.trips = m.trips[warmUp:]
		slices.Sort(m.trips)
		m.sendBlock()
	case word == wordTaken && p == m.next && m.size > 0:
		took := max(now.Sub(m.begun)-2*m.latency(), time.Microsecond, now.Sub(m.begun)/4)
		m.blocks = append(m.blocks, float64(m.size)/took.Seconds())
		if m.closing {
			m.done = true
			break
		}
		m.sendBlock()
	default:
		return errors.New("it does not measure, or runs another version of the program")
	}
	return nil
}
