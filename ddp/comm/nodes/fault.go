package nodes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/meet"
)

// level says which group an error comes from.
type level uint8

const (
	inwards  level = iota // the ranks of this node
	outwards              // the rail
	flat                  // all ranks
)

func (l level) String() string {
	return [...]string{"inside the node", "between nodes", "between ranks"}[l]
}

// rankOf is the rank in the job of a rank that an error names, or -1.
func (c *Comm) rankOf(l level, rank int) int {
	switch {
	case rank < 0:
		return -1
	case l == flat || l == outwards && c.jobRanks:
		if rank < c.size() {
			return rank
		}
	case l == inwards && rank < len(c.mine()):
		return c.mine()[rank]
	case l == outwards && rank < c.nodes():
		return c.ranks[rank][c.me()]
	}
	return -1
}

// A reason that a rank tells its groups begins with the rank in the job that it began with, since a group has other numbers: "#5 the loss is not a
// number". It is passed on unchanged from group to group.

func tell(rank int, reason string) error { return fmt.Errorf("#%d %s", rank, reason) }

func told(reason string) (rank int, rest string, ok bool) {
	number, rest, _ := strings.Cut(reason, " ")
	if !strings.HasPrefix(number, "#") {
		return 0, "", false
	}
	rank, err := strconv.Atoi(number[1:])
	return rank, rest, err == nil && rank >= 0
}

// explain turns an error of a group into one of this communicator.
func (c *Comm) explain(k *call, l level, err error) error {
	if errors.Is(err, comm.ErrClosed) && c.ctx.Err() != nil {
		return comm.ErrClosed
	}
	if own := c.fault(); own != nil {
		return own
	}
	return c.translate(k.name(), l, err)
}

func (c *Comm) translate(name string, l level, err error) error {
	if f := c.verdictOf(name); f != nil {
		return f
	}
	p := (*comm.PeerError)(nil)
	if !errors.As(err, &p) {
		return fmt.Errorf("comm: %s on rank %d: %v: %w", name, c.rank, l, err)
	}
	if rank, reason, ok := told(p.Reason); ok {
		return &comm.PeerError{Rank: rank, Call: name, Reason: reason}
	}
	own := &comm.PeerError{Rank: c.rankOf(l, p.Rank), Call: name, Reason: p.Reason}
	if c.trunk == nil && own.Rank >= 0 { // the end of a branch is not that of the job
		if f := asFault(c.control.Report(own.Rank, own.Reason)); f != nil {
			return peer(f, name)
		}
	}
	return own
}

// verdictOf is the first cause of the job's failure as the error of a call, or nil.
func (c *Comm) verdictOf(name string) error {
	if f := asFault(c.control.Err()); f != nil {
		return peer(f, name)
	}
	return nil
}

func asFault(err error) *meet.Fault {
	f := (*meet.Fault)(nil)
	if errors.As(err, &f) {
		return f
	}
	return nil
}

func peer(f *meet.Fault, name string) *comm.PeerError {
	reason := f.Reason
	if f.Host != "" {
		reason += " (on host " + f.Host + ")"
	}
	return &comm.PeerError{Rank: f.Rank, Call: name, Reason: reason}
}

// fault returns the error of every later call, or nil.
func (c *Comm) fault() error {
	if !c.down.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// fail breaks the groups with an error of this rank, or one that it was told, and returns the first error. announce: the control does not know it yet.
func (c *Comm) fail(err error, announce bool) error {
	rank, reason := c.rank, err.Error()
	if p := (*comm.PeerError)(nil); errors.As(err, &p) && p.Rank >= 0 {
		rank, reason = p.Rank, p.Reason
	}
	return c.shatter(err, rank, reason, announce)
}

func (c *Comm) shatter(err error, rank int, reason string, announce bool) error {
	c.mu.Lock()
	first := c.broken == nil
	if first {
		c.broken = err
	}
	err = c.broken
	c.down.Store(true)
	c.mu.Unlock()
	if !first {
		return err
	}
	if announce && c.trunk == nil && c.control.Err() == nil {
		if rank == c.rank {
			c.control.Abort(errors.New(reason))
		} else {
			_ = c.control.Report(rank, reason) // asked before
		}
	}
	for _, g := range []comm.Communicator{c.inner, c.outer, c.flat} {
		if g != nil {
			g.Abort(tell(rank, reason))
		}
	}
	return err
}

// Abort breaks the groups on all ranks with a reason of this rank.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	rank, text := c.rank, reason.Error()
	if p := (*comm.PeerError)(nil); errors.As(reason, &p) && p.Rank >= 0 { // not this rank is the cause
		rank, text = p.Rank, p.Reason
	}
	_ = c.shatter(fmt.Errorf("comm: rank %d aborted: %w", c.rank, reason), rank, text, true)
}

// Check returns what broke the group, if anything did.
func (c *Comm) Check() error {
	if err := c.fault(); err != nil {
		return err
	}
	if err := c.verdictOf("check"); err != nil {
		return err
	}
	for l, g := range map[level]comm.Communicator{inwards: c.inner, outwards: c.outer, flat: c.flat} {
		if g == nil {
			continue
		}
		if err := comm.Check(g); err != nil {
			return c.fail(c.translate("check", l, err), true)
		}
	}
	return nil
}

// inwardly and outwardly do a call of a group and wait for it.
func (c *Comm) inwardly(k *call) func(comm.Handle, error) error  { return c.at(k, inwards) }
func (c *Comm) outwardly(k *call) func(comm.Handle, error) error { return c.at(k, outwards) }

func (c *Comm) at(k *call, l level) func(comm.Handle, error) error {
	return func(h comm.Handle, err error) error {
		if h, err = c.fly(h, err); err == nil {
			err = c.land(h)
		}
		if err != nil {
			return c.explain(k, l, err)
		}
		return nil
	}
}
