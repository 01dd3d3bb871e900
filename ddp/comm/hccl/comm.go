package hccl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/npu"
)

// Comm is one rank's end of a group.
type Comm struct {
	comm.Collectives

	rank, size int
	control    comm.Communicator // of the caller
	posts      comm.Communicator // the same ranks, for announcements: Note [announcements] in post.go. nil for one rank
	port       port
	lib        library
	group      uintptr // HcclComm; 0 for one rank
	unsure     bool    // HCCL may have made one after this rank gave up
	config     settings.Config
	before     bool          // compare calls before HCCL sees them
	timeout    time.Duration // for a silent rank, by HCCL_TIMEOUT; 0: the call's own
	longWork   time.Duration
	rail       rail
	life       context.Context // ends when the group breaks or closes
	end        context.CancelFunc
	pairs      pairs
	origin     time.Time // when the device was opened, as the completer knows it

	mu      sync.Mutex
	filled  sync.Cond // queue has a call, or closed
	queue   []*call   // in order of issue
	closed  bool
	broken  error       // first error
	dropped bool        // the rail was aborted
	free    atomic.Bool // then: the device has let go of the memory of its calls
	held    bool        // the device knows that HCCL has a communicator on it that stays
	gone    bool        // HCCL's communicator is destroyed
	calls   int64
	pending int         // calls without an end
	events  []npu.Event // idle
	stats   comm.Stats
	wg      sync.WaitGroup
	left    chan struct{} // closed when everything is given back

	leaving error // of giving back, before left is closed

	closeTime time.Duration
	insist    bool // for tests: destroy HCCL's communicator even if the group broke
}

var (
	_ comm.Communicator = (*Comm)(nil)
	_ comm.Ordered      = (*Comm)(nil)
	_ comm.Watcher      = (*Comm)(nil)
)

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Transport is "hccl".
func (c *Comm) Transport() string { return "hccl" }

// Alloc returns memory of the device. It lives until it is freed, or until the device closes.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("comm: alloc of %d bytes", bytes)
	}
	if err := c.fault(); err != nil {
		return nil, err
	}
	return c.port.Alloc(bytes)
}

// AllReduceAfter is AllReduce behind an event of the device.
func (c *Comm) AllReduceAfter(ctx context.Context, ev npu.Event, m comm.Mem, op comm.Op) (comm.Handle, error) {
	k, err := c.issue(ctx, &call{what: comm.Call{Kind: comm.AllReduce, Op: op, DType: m.DType, Elems: m.Elems}, out: m, in: m, after: ev, ordered: true})
	if err != nil {
		return nil, err
	}
	return onDevice{k}, nil
}

// plain starts a call that is not ordered by an event of the caller.
func (c *Comm) plain(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
	switch what.Kind {
	case comm.Send, comm.Recv:
		return c.message(ctx, what, in, lane{what.Root, what.Kind == comm.Send})
	}
	k, err := c.issue(ctx, &call{what: what, out: out, in: in})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Work reports long work, on the control communicator.
func (c *Comm) Work(what string) comm.Work { return c.control.Work(what) }

// Stats counts finished calls. Bytes on the wire are an estimate: HCCL does not tell.
func (c *Comm) Stats() comm.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Check returns the error that broke the group, here or on a peer.
func (c *Comm) Check() error {
	if err := c.fault(); err != nil {
		return err
	}
	return c.peers()
}

// peers asks whether a peer died or aborted.
func (c *Comm) peers() error {
	if c.size == 1 {
		return nil
	}
	if err := comm.Check(c.control); err != nil {
		return err
	}
	return comm.Check(c.posts)
}

// fault is the error of every later call, or nil.
func (c *Comm) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// event takes an idle event, or makes one. mu is held.
func (c *Comm) event() (npu.Event, error) {
	const rest = 16 // an event rests for a while before it is recorded again: a stream may be about to wait for it
	if len(c.events) > rest {
		ev := c.events[0]
		c.events = c.events[1:]
		return ev, nil
	}
	return c.port.NewEvent()
}
