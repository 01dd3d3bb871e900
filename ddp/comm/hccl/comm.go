package hccl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/npu"
)

// Comm is one rank's end of a group.
type Comm struct {
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
	broken  error // first error
	dropped bool  // the rail was aborted
	held    bool  // the device knows that HCCL has a communicator on it that stays
	gone    bool  // HCCL's communicator is destroyed
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

// AllReduce combines m of all ranks and leaves the result in m of each.
func (c *Comm) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.AllReduce, Op: op, DType: m.DType, Elems: m.Elems}, m, m)
}

// AllReduceAfter is AllReduce behind an event of the device.
func (c *Comm) AllReduceAfter(ctx context.Context, ev npu.Event, m comm.Mem, op comm.Op) (comm.Handle, error) {
	k, err := c.issue(ctx, &call{what: comm.Call{Kind: comm.AllReduce, Op: op, DType: m.DType, Elems: m.Elems}, out: m, in: m, after: ev, ordered: true})
	if err != nil {
		return nil, err
	}
	return onDevice{k}, nil
}

// ReduceScatter combines in of all ranks and leaves part Rank of the result in out.
func (c *Comm) ReduceScatter(ctx context.Context, out, in comm.Mem, op comm.Op) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.ReduceScatter, Op: op, DType: in.DType, Elems: in.Elems}, out, in)
}

// AllGather copies in of all ranks to out of each, in rank order.
func (c *Comm) AllGather(ctx context.Context, out, in comm.Mem) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.AllGather, DType: out.DType, Elems: out.Elems}, out, in)
}

// Broadcast copies m of root to m of all.
func (c *Comm) Broadcast(ctx context.Context, m comm.Mem, root int) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.Broadcast, DType: m.DType, Root: root, Elems: m.Elems}, m, m)
}

// Reduce combines m of all ranks into m of root.
func (c *Comm) Reduce(ctx context.Context, m comm.Mem, op comm.Op, root int) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.Reduce, Op: op, DType: m.DType, Root: root, Elems: m.Elems}, m, m)
}

// AllToAll copies part j of in to part Rank of out on rank j.
func (c *Comm) AllToAll(ctx context.Context, out, in comm.Mem) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.AllToAll, DType: in.DType, Elems: in.Elems}, out, in)
}

// Barrier completes when all ranks called it.
func (c *Comm) Barrier(ctx context.Context) (comm.Handle, error) {
	return c.plain(ctx, comm.Call{Kind: comm.Barrier}, comm.Mem{}, comm.Mem{})
}

func (c *Comm) plain(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
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
