package shm

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Comm is one rank's end of a group.
type Comm struct {
	comm.Collectives

	rank, size int
	files      files
	dir        string   // where the group met; "" = /dev/shm
	life       []*block // by rank: where its beats and its long work are; those of the trunk for a group from Branch
	trunk      *Comm    // the group that this one was made from, or nil
	control    mapping
	v          view
	heap       heap
	base       time.Time // origin of the clock
	smallBytes int64
	looks      int  // polls of the flags before anything else
	crowded    bool // more ranks than processors: polling would only keep the others from running

	mu      sync.Mutex
	idle    sync.Cond    // driving became false
	watch   sync.RWMutex // held by Check while it reads shared memory
	gone    bool         // that memory is unmapped; under watch
	queue   []*call      // in order of issue; the first one is active
	driving bool         // a goroutine drives the queue; see Note [driving] in drive.go
	closed  bool
	broken  error // first error
	calls   int64
	lanes   map[lane]*laneState
	stats   comm.Stats
	down    atomic.Bool // broken or aborted: a cheap flag for the driver

	missed atomic.Int64 // missed wake-ups although the flags were set; a test requires none

	wake chan struct{}
	wg   sync.WaitGroup

	// Used only by the driver.
	fenced  uint32 // see fence
	scratch call   // a call that may complete before issue returns
	round   uint64 // last round that this rank published
	slots   uint32 // staging slots used so far
	near    []near
	ptrs    []pointers
	srcs    []unsafe.Pointer
	there   func() bool // reached, made once
	vigil   vigil       // over the missing ranks of this round
}

var _ comm.Communicator = (*Comm)(nil)

// near remembers the last region looked up for a rank.
type near struct {
	base int64
	mem  []byte
}

func newComm(f files, m mapping, rank, size int) *Comm {
	c := &Comm{rank: rank, size: size, files: f, control: m, v: viewOf(m.mem, size), base: time.Now(), wake: make(chan struct{}, 1), near: make([]near, size)}
	c.Issue = c.issue
	c.life = c.v.block
	c.heap.page = int64(max(pageBytes, os.Getpagesize()))
	c.ptrs, c.srcs, c.there = newPointers(size), make([]unsafe.Pointer, size), c.reached
	c.idle.L = &c.mu
	c.wg.Add(1)
	go c.worker()
	return c
}

// settle finishes the set-up once all ranks have joined. Each rank decides from the shared data, so all decide the same.
func (c *Comm) settle() {
	var union [16]uint64
	for _, b := range c.v.block {
		if b.heap == 0 && c.files.heap != c.files.control {
			if c.files.heap >= 0 {
				closeFD(c.files.heap)
			}
			c.files.heap = c.files.control
		}
		for i, w := range b.cpus {
			union[i] |= w
		}
	}
	n := 0
	for _, w := range union {
		n += bits.OnesCount64(w)
	}
	c.crowded, c.smallBytes, c.looks = n < c.size, smallRoomy, 100
	if c.crowded {
		c.smallBytes, c.looks = smallCrowded, 0
	}
}

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Transport is "shm".
func (c *Comm) Transport() string { return "shm" }

// Stats counts finished calls.
func (c *Comm) Stats() comm.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// check refuses invalid calls.
func (c *Comm) check(ctx context.Context, cl comm.Call, out, in comm.Mem) error {
	if err := cl.Check(c.rank, c.size, out, in); err != nil {
		return err
	}
	if out.Elems > 0 && out.Ptr.Buf.Host() == nil || in.Elems > 0 && in.Ptr.Buf.Host() == nil {
		return fmt.Errorf("comm: %v on rank %d: the host cannot access this memory (freed, or device memory)", cl, c.rank)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("comm: %v on rank %d: not started: %w", cl, c.rank, context.Cause(ctx))
	}
	return nil
}

// brokenError returns the error of every later call.
func (c *Comm) brokenError() error {
	if !c.down.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close leaves the group: pending calls fail with comm.ErrClosed, peers that wait for this rank get a *comm.PeerError, memory from Alloc is
// unmapped. A rank whose calls have all completed can close without waiting for others. Close is idempotent.
func (c *Comm) Close() error { return c.leave(left) }

// Vanish makes a rank disappear silently, as if its process had died: for tests of transports that are made of this one.
func (c *Comm) Vanish() { _ = c.leave(absent) }

func (c *Comm) leave(state uint32) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	if c.broken == nil {
		c.broken = comm.ErrClosed
	}
	c.down.Store(true)
	lanes := c.lanes
	c.mu.Unlock()

	if state == left {
		atomic.StoreUint32(&c.v.block[c.rank].state, left)
	}
	c.ringAll() // our own sleepers and the ranks that wait for us
	close(c.wake)
	for _, l := range lanes {
		close(l.wake)
	}
	c.wg.Wait()
	c.mu.Lock()
	for c.driving { // a caller in Wait
		c.idle.Wait()
	}
	c.flush()
	c.mu.Unlock()
	c.watch.Lock()
	c.gone = true
	c.watch.Unlock()
	c.heap.close()
	c.control.unmap()
	c.files.close()
	return nil
}

// flush fails all queued calls. mu is held.
func (c *Comm) flush() {
	for _, k := range c.queue {
		k.finish(c.broken)
	}
	c.queue = nil
	for _, l := range c.lanes {
		for _, k := range l.queue {
			k.finish(c.broken)
		}
		l.queue = nil
	}
}
