package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
)

// message passes Send or Recv on: to the inner group for a rank of this node, else to the group of all ranks.
func (c *Comm) message(ctx context.Context, what comm.Call, m comm.Mem) (comm.Handle, error) {
	if err := c.fault(); err != nil {
		return nil, err
	}
	group, l, there := c.flat, flat, what
	if c.nodeOf[what.Root] == c.node() {
		group, l = c.inner, inwards
		there.Root = c.local[what.Root]
	}
	if group == nil {
		return nil, fmt.Errorf("comm: %v on rank %d: rank %d is on another host, and this communicator has no group for messages between hosts\n"+
			"hint: set nodes.Config.Flat", what, c.rank, what.Root)
	}
	h, err := comm.Do(ctx, group, there, m, m)
	if err != nil {
		return nil, c.explainMessage(what, l, err)
	}
	return &message{Handle: h, c: c, what: what, level: l}, nil
}

// message is a Send or Recv in progress.
type message struct {
	comm.Handle
	c     *Comm
	what  comm.Call
	level level
	once  sync.Once
}

// Wait waits, and counts the message.
func (m *message) Wait(ctx context.Context) error {
	err := m.Handle.Wait(ctx)
	if err != nil {
		select {
		case <-m.Done():
			return m.c.explainMessage(m.what, m.level, err)
		default:
			return err // this wait gave up, the message has not
		}
	}
	m.once.Do(func() {
		transfer, waited, apart := m.Took()
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		m.c.stats.Add(m.what.Elems*int64(m.what.DType.Size()), 0, transfer, waited, apart)
	})
	return nil
}

// explainMessage translates the error of a message. Unless it is a mismatch, or only this call's, the group is broken.
func (c *Comm) explainMessage(what comm.Call, l level, err error) error {
	var m *comm.MismatchError
	var t *comm.TimeoutError
	switch {
	case errors.As(err, &m):
		own := *m
		own.Rank, own.Peer, own.Mine = c.rank, what.Root, c.renamed(m.Mine, what.Root)
		own.Its = c.renamed(m.Its, c.rank) // a message from the peer names this rank
		return &own
	case errors.As(err, &t):
		own := *t
		own.Call, own.Missing, own.Stalled = c.renamed(t.Call, what.Root), c.jobRanksOf(l, t.Missing), c.jobRanksOf(l, t.Stalled)
		return c.fail(&own, true)
	case errors.Is(err, comm.ErrClosed):
		return comm.ErrClosed
	}
	if own := c.fault(); own != nil {
		return own
	}
	var p *comm.PeerError
	if errors.As(err, &p) {
		return c.fail(c.translate(what.String(), l, err), true)
	}
	if broken := comm.Check(c.inner); broken != nil {
		return c.fail(c.translate(what.String(), l, err), true)
	}
	return err // refused, or cancelled
}

func (c *Comm) jobRanksOf(l level, ranks []int) (list []int) {
	for _, r := range ranks {
		if r = c.rankOf(l, r); r >= 0 {
			list = append(list, r)
		}
	}
	return list
}

// renamed gives a message's call, such as "send #3 f32[8] to 1", the number of the peer in the job.
func (c *Comm) renamed(call string, peer int) string {
	for _, word := range []string{" to ", " from "} {
		if i := strings.LastIndex(call, word); i >= 0 {
			return fmt.Sprintf("%s%s%d", call[:i], word, peer)
		}
	}
	return call
}
