package tcp

import (
	"syscall"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// address is a place in memory that something else keeps alive: the active call, or the group. It is no pointer, because the collector would follow it
// after that memory has gone.
type address uintptr

func (a address) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

func addressOf(mem []byte) address { return address(unsafe.Pointer(&mem[0])) }

// bytes is the memory from a on.
func (a address) bytes(n int) []byte { return unsafe.Slice((*byte)(a.pointer()), n) }

// span is memory that goes to or comes from a peer in pieces.
type span struct {
	mem    address // 0: an empty piece, or staged
	n      int     // bytes
	pieces int
	phase  uint16
	staged bool // in: to be reduced
	gated  bool // out: its pieces are released one by one, as those before them in the pipeline are done
	free   bool // in: nothing in mem is needed any more, so it may be written before the header has been looked at
}

// cursor walks over the pieces of a list of spans.
type cursor struct {
	span, off int
}

// piece is the memory at the cursor; mem is 0 for a staged piece.
func (u cursor) piece(list []span) (s *span, mem address, n int) {
	s = &list[u.span]
	if s.mem != 0 {
		mem = s.mem + address(u.off)
	}
	return s, mem, min(s.n-u.off, pieceBytes)
}

// next moves on by one piece.
func (u *cursor) next(list []span) {
	u.off += pieceBytes
	if u.off >= list[u.span].n {
		u.span, u.off = u.span+1, 0
	}
}

// peer is another rank, as the driver sees it.
type peer struct {
	rank, job int
	lines     []*line
	stage     address // pieceBytes
	lanes     [2]lane // to and from the peer

	// Of the active call.
	out, in       []span
	outN, outDone int // pieces
	may           int // pieces that may be sent so far
	inN, got      int
	at            cursor  // of piece got
	full          bool    // the stage holds a piece
	then          []*peer // to whom a piece that came and is not staged releases one
	arrived       bool

	control []header // frames of lanes without payload that are to be sent
	rx      uint64   // bytes received, as a sign of life
}

// line is one connection to a peer. With several, piece i of a call goes over link i mod their number; everything else goes over the first.
type line struct {
	p       *peer
	index   int
	fd      int
	sendErr syscall.Errno // why nothing more can be sent; the reason is to be read

	// The way out: a batch of frames that leaves in one system call, or several if the buffer of the socket is full.
	next    int // index of the next piece of the call
	from    cursor
	done    int    // pieces of the call that have been sent on this link
	pieces  int    // of the call in the batch
	data    int    // bytes of a lane's data in the batch
	said    int    // frames of lanes without data in the batch
	size    int    // bytes of the batch
	left    int    // of which are to be sent
	opening int    // bytes of the batch up to the end of the call's first piece; 0 if that is not in it
	spare   []byte // what is sent of a call that failed
	heads   [maxBatch][headerBytes]byte
	batch   message
	stuck   bool // the socket took less than it was given

	// The way in.
	head  [headerBytes]byte
	have  int // bytes of it
	h     header
	known bool    // h is valid
	begun bool    // its payload is being read
	dst   address // of the rest of the payload; 0: thrown away
	rest  int
	text  []byte // of a reason
	want  message
	dry   bool   // the socket had less than was asked of it
	ahead []byte // bytes of the stream that were read before their turn
	bye   bool   // the peer closed in order
}

const (
	maxBatch  = 4
	sendBytes = 256 << 10 // that a batch has at least, if there is so much
)

// reset prepares the peer for a call.
func (p *peer) reset() {
	p.out, p.in, p.then = p.out[:0], p.in[:0], p.then[:0]
	p.outN, p.outDone, p.may, p.inN, p.got, p.at = 0, 0, 0, 0, 0, cursor{}
	p.full, p.arrived = false, false
	for _, l := range p.lines {
		l.next, l.from, l.done, l.pieces = l.index, cursor{}, 0, 0
	}
}

// begin finishes a plan: a list of which nothing can be sent at once gets an empty piece in front, so that every rank hears from every other one. Both
// sides do the same to the same list.
func (p *peer) begin() {
	p.out, p.outN = hail(p.out)
	p.in, p.inN = hail(p.in)
	for _, s := range p.out {
		if s.gated {
			break
		}
		p.may += s.pieces
	}
	for _, l := range p.lines[1:] { // the first piece of link i is piece i
		for range l.index {
			if l.from.span < len(p.out) {
				l.from.next(p.out)
			}
		}
	}
}

func hail(list []span) ([]span, int) {
	if len(list) == 0 || list[0].gated {
		list = append(list, span{})
		copy(list[1:], list)
		list[0] = span{pieces: 1, phase: phaseExchange, free: true}
	}
	n := 0
	for _, s := range list {
		n += s.pieces
	}
	return list, n
}

// give adds memory to what goes to the peer, take to what comes from it.
func (p *peer) give(mem []byte, phase uint16, gated bool) {
	if n := len(mem); n > 0 {
		p.out = append(p.out, span{mem: addressOf(mem), n: n, pieces: pieces(n), phase: phase, gated: gated})
	}
}

func (p *peer) take(mem []byte, gated, free bool) {
	if n := len(mem); n > 0 {
		p.in = append(p.in, span{mem: addressOf(mem), n: n, pieces: pieces(n), phase: phaseGather, gated: gated, free: free})
	}
}

// stageIn adds n bytes to reduce to what comes from the peer.
func (p *peer) stageIn(n int, phase uint16, gated bool) {
	if n > 0 {
		p.in = append(p.in, span{n: n, pieces: pieces(n), phase: phase, staged: true, gated: gated, free: true})
	}
}

func pieces(n int) int { return (n + pieceBytes - 1) / pieceBytes }

// sent reports whether piece i of the call has been handed to the kernel.
func (p *peer) sent(i int) bool {
	return p.lines[i%len(p.lines)].done > i/len(p.lines)
}

// due is the link that carries the piece that the call waits for, or nil.
func (p *peer) due() *line {
	if p.got == p.inN || p.full {
		return nil
	}
	return p.lines[p.got%len(p.lines)]
}

// mine reports whether a header is of the given call.
func (h *header) mine(what comm.Call) bool {
	return h.key == what.Key() && h.elems == uint64(what.Elems)
}
