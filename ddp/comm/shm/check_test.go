package shm

import (
	"context"
	"errors"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Check tells of an abort and of a peer's end without a call, and not of a peer that closed in order.
func TestCheck(t *testing.T) {
	local := func() []comm.Communicator {
		g, err := NewLocal(3)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeThem(g) })
		return g
	}
	var p *comm.PeerError

	g := local()
	for _, c := range g {
		if err := comm.Check(c); err != nil {
			t.Errorf("a new group: %v", err)
		}
	}
	g[2].Close()
	if err := comm.Check(g[0]); err != nil {
		t.Errorf("after a peer closed: %v", err)
	}
	if err := comm.Check(g[2]); !errors.Is(err, comm.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	g[1].Abort(errors.New("enough"))
	if err := comm.Check(g[0]); !errors.As(err, &p) || p.Rank != 1 || p.Reason != "enough" {
		t.Errorf("after an abort: %v", err)
	}

	g = local()
	g[1].(*Comm).leave(absent)
	if err := comm.Check(g[0]); crossProcess && (!errors.As(err, &p) || p.Rank != 1) {
		t.Errorf("after a peer's end: %v", err)
	}
	if _, err := g[0].Barrier(context.Background()); crossProcess && err == nil {
		t.Error("the group is not broken")
	}

	// A rank that aborts because of a peer names that peer.
	g = local()
	g[0].Abort(&comm.PeerError{Rank: 2, Call: "x", Reason: "it burnt"})
	if err := comm.Check(g[1]); !errors.As(err, &p) || p.Rank != 2 || p.Reason != "it burnt" {
		t.Errorf("after an abort because of a peer: %v", err)
	}
}

func closeThem(g []comm.Communicator) {
	for _, c := range g {
		c.Close()
	}
}
