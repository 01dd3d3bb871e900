package tcp

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
)

var _ comm.Watcher = (*Comm)(nil)

// Check returns the error that broke the group, or the failure of the job.
func (c *Comm) Check() error {
	if c.down.Load() {
		return c.fault()
	}
	if err := c.control.Err(); err != nil {
		return c.setBroken(c.verdict(err, "watching the group"))
	}
	return nil
}

// Abort breaks the group, and all groups of the job, with a reason of this rank.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	c.setBroken(fmt.Errorf("comm: rank %d aborted: %w", c.jobs[c.rank], reason))
	c.tell(reason)
	c.rally()
}

// tell announces the first error to the other ranks.
func (c *Comm) tell(err error) {
	if c.trunk != nil {
		return // see mourn
	}
	if p := (*comm.PeerError)(nil); errors.As(err, &p) && p.Rank >= 0 && p.Rank != c.jobs[c.rank] { // not this rank is the cause
		_ = c.control.Report(p.Rank, p.Reason)
		return
	}
	c.control.Abort(err)
}

// rally wakes driver and worker, so that they notice that the group is broken.
func (c *Comm) rally() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rouse()
	c.kick()
}

// breakWith breaks the group with an error that the driver found.
func (c *Comm) breakWith(err error) {
	c.mu.Lock()
	first := c.broken == nil
	c.mu.Unlock()
	c.setBroken(err)
	if p := (*comm.PeerError)(nil); first && !errors.As(err, &p) { // that a peer is gone was the Control's verdict
		c.tell(err)
	}
}

// setBroken keeps the first error and returns it.
func (c *Comm) setBroken(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
	c.down.Store(true)
	return c.broken
}

// guard waits for the failure of the job.
func (c *Comm) guard() {
	defer c.wg.Done()
	select {
	case <-c.quit:
	case <-c.control.Down():
		name := "watching the group"
		c.mu.Lock()
		if c.head != nil {
			name = c.head.what.Number(c.head.number)
		}
		c.mu.Unlock()
		c.setBroken(c.verdict(c.control.Err(), name))
		c.rally()
	}
}

// verdict makes an error of the failure of the job.
func (c *Comm) verdict(err error, call string) error {
	f := (*meet.Fault)(nil)
	switch {
	case !errors.As(err, &f):
		return fmt.Errorf("comm: %s: %w", call, err)
	case f.Rank == c.jobs[c.rank]:
		return &accused{call, f}
	}
	e := &comm.PeerError{Rank: f.Rank, Call: call, Reason: f.Reason}
	if f.Host != "" {
		e.Reason = fmt.Sprintf("%s (host %s)", f.Reason, f.Host)
	}
	return e
}

// accused is the error of a rank that others gave up. It is alive, so what failed is the way between them, and it is a victim like they are.
type accused struct {
	call  string
	fault *meet.Fault
}

func (e *accused) Error() string {
	return fmt.Sprintf("comm: %s: the other ranks gave up this one (rank %d), although it is alive: %s", e.call, e.fault.Rank, e.fault.Reason)
}

// Victim reports that another rank, or the network, is the cause.
func (e *accused) Victim() bool { return true }

// ExitCode returns 69.
func (e *accused) ExitCode() int { return launch.ExitUnavailable }

// patienceOfJob is how long a second group waits for the Control to say why a peer left.
const patienceOfJob = 500 * time.Millisecond

// gone is the error of a connection that broke. The Control knows who went first.
func (c *Comm) gone(p *peer, why string) error {
	name := c.name()
	if c.trunk == nil {
		return c.blame(p, why)
	}
	select { // the first group may go on, unless the whole job has failed
	case <-c.control.Down():
		return c.verdict(c.control.Err(), name)
	case <-time.After(patienceOfJob):
		return &comm.PeerError{Rank: p.job, Call: name, Reason: why}
	}
}

// blame reports a peer and returns the Control's verdict, which may name another rank.
func (c *Comm) blame(p *peer, why string) error {
	name := c.name()
	if err := c.control.Report(p.job, why); err != nil {
		return c.verdict(err, name)
	}
	return &comm.PeerError{Rank: p.job, Call: name, Reason: why}
}

// left is the error of a wait for a rank that closed its communicator.
func (c *Comm) left(p *peer) error {
	const why = "it closed its communicator"
	if c.trunk == nil {
		return c.blame(p, why)
	}
	return &comm.PeerError{Rank: p.job, Call: c.name(), Reason: why}
}

// name is that of the call that is being driven.
func (c *Comm) name() string {
	if k := c.active; k != nil {
		return k.what.Number(k.number)
	}
	for _, p := range c.others {
		for _, l := range p.lanes {
			if k := l.first; k != nil {
				return k.what.Number(k.number)
			}
		}
	}
	return "watching the group"
}

// mourn tells the peers of a second group that it is broken, as far as their connections have room. The first group and the job are not touched.
func (c *Comm) mourn() {
	if c.trunk == nil || c.mourned {
		return
	}
	c.mourned = true
	err := c.fault()
	if errors.Is(err, comm.ErrClosed) {
		return
	}
	cause, reason := c.jobs[c.rank], err.Error()
	if p := (*comm.PeerError)(nil); errors.As(err, &p) {
		cause, reason = p.Rank, p.Reason
	}
	text := []byte(reason[:min(len(reason), textBytes)])
	for _, p := range c.others {
		l := p.lines[0]
		if l.left == 0 && l.sendErr == 0 {
			h := header{length: uint32(len(text)), key: uint64(cause), phase: phaseControl, algorithm: controlAbort}
			frame := make([]byte, headerBytes+len(text))
			h.put((*[headerBytes]byte)(frame))
			copy(frame[headerBytes:], text)
			_, _ = sendFrom(l.fd, unsafe.Pointer(&frame[0]), len(frame)) // if there is no room, the end of the stream says less
		}
		for _, l := range p.lines {
			endStream(l.fd)
		}
	}
}

// aborted is the error that a peer announced on a connection.
func (c *Comm) aborted(rank int, reason string) error {
	return &comm.PeerError{Rank: rank, Call: c.name(), Reason: reason}
}
