package staged

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Name is the name of the transport.
const Name = "staged"

func init() {
	comm.RegisterTransport(Name, 0, func(d npu.Device) bool { return d.Info().Separate },
		func(ctx context.Context, o comm.Opening) (comm.Communicator, error) { return Open(ctx, o) })
}

// Comm is one rank's end of a group.
type Comm struct {
	comm.Collectives

	dev  npu.Device
	ctl  comm.Communicator // not owned
	host comm.Communicator // a second group of the same ranks

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // of the lanes' waiters

	mu     sync.Mutex
	closed bool
	broken error         // first error
	lanes  map[int]*lane // by peer: Send to r is r+1, Recv from r is -r-1, collectives are 0
	free   []npu.Event   // of calls that were waited for
	events []npu.Event   // all
	stats  comm.Stats
}

var (
	_ comm.Communicator = (*Comm)(nil)
	_ comm.Ordered      = (*Comm)(nil)
	_ comm.Watcher      = (*Comm)(nil)
)

// Open makes the data communicator of a device. Every rank calls it at the same point.
func Open(ctx context.Context, o comm.Opening) (*Comm, error) {
	info := o.Device.Info()
	if !info.Separate {
		return nil, fmt.Errorf("comm: staged: the host can access the memory of %s, so nothing needs to be staged", info.Name)
	}
	ctx, cancel := comm.Patient(ctx, o.Timeout, o.LongWork)
	defer cancel()
	host, err := comm.Branch(ctx, o.Control)
	if err != nil {
		return nil, err
	}
	c := &Comm{dev: o.Device, ctl: o.Control, host: host, lanes: map[int]*lane{}}
	c.Issue = func(ctx context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
		return c.issue(ctx, what, out, in, nil)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if o.Control.Rank() == 0 {
		slog.Info("gradients travel through host memory: this binary has no transport for the memory of this device",
			"device", info.Name, "transport", Name, "by", o.Control.Transport())
	}
	return c, nil
}

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.host.Rank() }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.host.Size() }

// Transport is "staged".
func (c *Comm) Transport() string { return Name }

// Alloc returns memory of the device. No memory saves the copies.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("comm: staged: alloc of %d bytes", bytes)
	}
	if err := c.fault(); err != nil {
		return nil, err
	}
	return c.dev.Alloc(bytes)
}

// AllReduceAfter is AllReduce behind an event.
func (c *Comm) AllReduceAfter(ctx context.Context, ev npu.Event, m comm.Mem, op comm.Op) (comm.Handle, error) {
	return c.issue(ctx, comm.Call{Kind: comm.AllReduce, Op: op, DType: m.DType, Elems: m.Elems}, m, m, ev)
}

// Work reports long work on the control communicator; it counts here too.
func (c *Comm) Work(what string) comm.Work { return c.ctl.Work(what) }

// Stats counts finished calls.
func (c *Comm) Stats() comm.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Check returns what broke the group, if anything did, here or on the control communicator.
func (c *Comm) Check() error {
	if err := c.fault(); err != nil {
		return err
	}
	return errors.Join(comm.Check(c.host), comm.Check(c.ctl))
}

// Abort breaks the group on all ranks, and the control communicator with it.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	c.setBroken(fmt.Errorf("comm: rank %d aborted: %w", c.Rank(), reason))
	c.host.Abort(reason)
	c.ctl.Abort(reason)
}

// fault returns the error of every later call, or nil.
func (c *Comm) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// setBroken keeps the first error.
func (c *Comm) setBroken(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
}

// Close leaves the group: pending calls fail with comm.ErrClosed. The control communicator stays open. Idempotent.
func (c *Comm) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	if c.broken == nil {
		c.broken = comm.ErrClosed
	}
	lanes := make([]*lane, 0, len(c.lanes))
	for _, l := range c.lanes {
		lanes = append(lanes, l)
	}
	c.mu.Unlock()
	errs := []error{c.host.Close()} // host functions that wait for peers return
	c.cancel()
	for _, l := range lanes {
		errs = append(errs, l.close())
	}
	c.wg.Wait()
	for _, ev := range c.events {
		errs = append(errs, ev.Close())
	}
	return errors.Join(errs...)
}
