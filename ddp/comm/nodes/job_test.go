package nodes

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
)

// group makes the ranks of a job, with shared memory inside nodes and between them.
func group(t *testing.T, nodeOf []int, change func(*Config)) []comm.Communicator {
	t.Helper()
	g, err := NewLocal(nodeOf, change)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// vanish ends a rank as if its process had died.
func vanish(c comm.Communicator) {
	n := c.(*Comm)
	for _, g := range []comm.Communicator{n.inner, n.outer, n.flat} {
		if s, ok := g.(*shm.Comm); ok {
			s.Vanish()
		}
	}
}

// each runs f on all ranks at once, and returns what they say.
func each(t *testing.T, g []comm.Communicator, f func(c *Comm) error) []error {
	t.Helper()
	errs := make([]error, len(g))
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() { errs[r] = f(c.(*Comm)) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a rank hangs")
	}
	return errs
}

func all(t *testing.T, g []comm.Communicator, f func(c *Comm) error) {
	t.Helper()
	if err := errors.Join(each(t, g, f)...); err != nil {
		t.Fatal(err)
	}
}

func closeAll(g []comm.Communicator) {
	for _, c := range g {
		c.Close()
	}
}
