package self

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Comm is a group of one.
type Comm struct {
	comm.Collectives

	mu     sync.Mutex
	stats  comm.Stats
	broken error
}

var _ comm.Communicator = (*Comm)(nil)

// New returns a group of one rank.
func New() *Comm {
	c := &Comm{}
	c.Issue = c.do
	return c
}

// Rank is 0.
func (c *Comm) Rank() int { return 0 }

// Size is 1.
func (c *Comm) Size() int { return 1 }

// Transport is "self".
func (c *Comm) Transport() string { return "self" }

// Alloc returns zeroed host memory, page-aligned for large sizes.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("comm: alloc of %d bytes", bytes)
	}
	const a = 64
	b := make([]byte, bytes+a)
	return comm.NewHostBuffer(b[padding(b, a):][:bytes:bytes]), nil
}

// do copies in to out; where they are the same, nothing changes. Send and Recv fail: there is no other rank.
func (c *Comm) do(ctx context.Context, call comm.Call, out, in comm.Mem) (comm.Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	if err := call.Check(0, 1, out, in); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("comm: %v: %w", call, err)
	}
	two := call.Kind == comm.ReduceScatter || call.Kind == comm.AllGather || call.Kind == comm.AllToAll
	if two && in.Elems > 0 && out.Ptr != in.Ptr { // otherwise no memory is touched, so it may be anywhere
		dst, src := out.Host(), in.Host()
		if dst == nil || src == nil {
			return nil, fmt.Errorf("comm: %v: the host cannot access this memory\nhint: with one rank, use the same memory for in and out, or copy on the device", call)
		}
		if &dst[0] != &src[0] {
			copy(dst, src)
		}
	}
	c.stats.Calls++
	c.stats.Bytes += max(in.Bytes(), out.Bytes())
	return done{}, nil
}

// Work does nothing: no other rank waits.
func (c *Comm) Work(string) comm.Work { return idle{} }

type idle struct{}

func (idle) Beat() {}
func (idle) End()  {}

// Stats counts the calls.
func (c *Comm) Stats() comm.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Abort makes every later call fail with the reason.
func (c *Comm) Abort(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = fmt.Errorf("comm: aborted: %w", reason)
	}
}

// Close makes every later call fail. Memory from Alloc stays valid until it is garbage.
func (c *Comm) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = comm.ErrClosed
	}
	return nil
}

// done is the handle of every call: a call is complete when it returns.
type done struct{}

func (done) Wait(context.Context) error                         { return nil }
func (done) Done() <-chan struct{}                              { return comm.Closed() }
func (done) Took() (transfer, waited time.Duration, apart bool) { return 0, 0, true }
