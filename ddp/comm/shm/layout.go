package shm

import (
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// The file of a group: a control part of fixed size that every rank maps, then a heap from which Alloc takes regions that ranks map one by one.
//
//	page 0            header
//	then              one block per rank
//	then              two staging slots per rank
//	then              one pair per ordered pair of ranks: two lines and a ring for Send and Recv
//	then              heap, 2 MiB aligned
//
// Words that ranks watch are atomics; everything else is written before such a word is stored and read after it is loaded.

const (
	magic     = 0x6e6961727467 // "gtrain"
	version   = 2
	pageBytes = 4096 // of the control part; the heap counts in the system's pages
	hugeBytes = 2 << 20

	// MaxSize is the largest group.
	MaxSize = 256

	slotBytes  = 512 << 10 // a staging slot: fits in the second-level cache together with its source
	pairBytes  = 64 << 10  // half of the ring of a pair
	reasonSize = 1024
)

// header is page 0.
type header struct {
	magic    uint64
	version  uint32
	size     uint32
	nonce    uint64 // of the heap
	heapPid  uint32 // rank 0, which has the heap open as heapFD; 0: the heap is in this file
	heapFD   int32
	attached uint32 // ranks that joined
	aborted  uint32 // 0; 1 while abort is being written; 2
	abort    struct {
		rank int32
		n    uint32
		text [reasonSize]byte
	}
	_    [48]byte
	next uint64 // first free byte of the heap
	_    [88]byte
	bell
}

// bell lets ranks sleep until another rank rings it. See Note [sleeping] in wait.go.
type bell struct {
	count    uint32 // the futex word
	sleepers uint32
	_        [56]byte
}

// block is what one rank publishes to the others.
type block struct {
	pid   uint32
	state uint32 // absent, joined, left
	cpus  [16]uint64
	calls [2]uint32 // number of the call in line, for messages
	heap  uint32    // 1: this rank has the heap open
	beats uint32    // of long work, see Note [long work] in package comm
	work  [5]uint64 // description of the long work, padded with zeros
	line  [2]line   // by parity of the round
}

const (
	absent = iota
	joined
	left
)

// line is one cache line: the round that a rank has reached, and its call. One transfer between cores brings both. Peers may
// poll it, and each store can cost a transfer: so a field is stored only if it changes.
type line struct {
	round  uint64
	key    uint64 // comm.Call.Key
	elems  int64
	off    int64 // offset of the memory in the file, or -1: staged in slot
	base   int64 // region that holds off
	bytes  int64 // of the region
	slot   uint32
	number uint32 // of the message; Send and Recv only
	_      [8]byte
}

// set stores v if it differs.
func set[T comparable](field *T, v T) {
	if *field != v {
		*field = v
	}
}

func (l *line) call() comm.Call { return comm.CallOf(l.key, l.elems) }

// pair is one direction of exchange between two ranks.
type pair struct {
	bell
	send line // of the sender: round is the number of the message
	recv line // of the receiver
	prog [2]struct {
		chunks uint64 // moved through the ring so far; 0: by the sender, 1: by the receiver
		done   uint64 // messages finished
		_      [48]byte
	}
}

type layout struct {
	size                             int
	blocks, slots, pairs, rings, end int64
}

func layoutOf(size int) layout {
	l := layout{size: size, blocks: pageBytes}
	n := int64(size)
	l.slots = align(l.blocks+n*int64(unsafe.Sizeof(block{})), pageBytes)
	l.pairs = l.slots + n*2*slotBytes
	l.rings = align(l.pairs+n*n*int64(unsafe.Sizeof(pair{})), pageBytes)
	l.end = align(l.rings+n*n*2*pairBytes, hugeBytes)
	return l
}

func (l layout) slot(rank int) int64 { return l.slots + int64(rank)*2*slotBytes }
func (l layout) ring(from, to int) int64 {
	return l.rings + int64(from*l.size+to)*2*pairBytes
}

// view gives access to the mapped control part.
type view struct {
	layout
	mem   []byte
	hdr   *header
	block []*block
}

func viewOf(mem []byte, size int) view {
	v := view{layout: layoutOf(size), mem: mem, hdr: (*header)(unsafe.Pointer(&mem[0]))}
	for r := range size {
		v.block = append(v.block, (*block)(unsafe.Pointer(&mem[v.blocks+int64(r)*int64(unsafe.Sizeof(block{}))])))
	}
	return v
}

func (v *view) slotMem(rank int, which uint32) []byte {
	at := v.slot(rank) + int64(which)*slotBytes
	return v.mem[at : at+slotBytes : at+slotBytes]
}

func (v *view) pair(from, to int) *pair {
	return (*pair)(unsafe.Pointer(&v.mem[v.pairs+int64(from*v.size+to)*int64(unsafe.Sizeof(pair{}))]))
}

func (v *view) ringMem(from, to, half int) []byte {
	at := v.ring(from, to) + int64(half)*pairBytes
	return v.mem[at : at+pairBytes : at+pairBytes]
}

func align(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }

// The compiler checks the layout: lines do not straddle cache lines.
var (
	_ [0]struct{} = [(unsafe.Offsetof(block{}.line)) % 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(line{}) - 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(block{}) % 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(pair{}) % 64]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(header{}.bell) % 64]struct{}{}
	_             = [pageBytes - unsafe.Sizeof(header{})]struct{}{}
)

func checkSize(rank, size int) error {
	if size < 1 || size > MaxSize {
		return fmt.Errorf("comm: shm: cannot make a group of %d ranks\nhint: use 1 to %d", size, MaxSize)
	}
	if rank < 0 || rank >= size {
		return fmt.Errorf("comm: shm: rank %d of a group of %d", rank, size)
	}
	return nil
}
