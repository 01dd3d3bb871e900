package nodes

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/meet"
)

// rendezvous is one within this process: what the ranks tell each other arrives at once.
type rendezvous struct {
	mu   sync.Mutex
	life []meet.Life
	err  error
	down chan struct{}
}

func newJob(n int) *rendezvous {
	return &rendezvous{life: make([]meet.Life, n), down: make(chan struct{})}
}

// member is a rank's end.
type member struct {
	*rendezvous
	rank int
}

var _ Control = member{}

func (m member) Progress(calls int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life[m.rank].Calls = calls
}

func (m member) Work(what string) (beat, end func()) {
	beats := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.life[m.rank].Beats++
	}
	set := func(what string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.life[m.rank].Work = what
		m.life[m.rank].Beats++
	}
	set(what)
	return beats, func() { set("") }
}

func (m member) Life(rank int) meet.Life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life[rank]
}

func (m member) Report(rank int, reason string) error { return m.fault(rank, reason) }
func (m member) Abort(reason error)                   { _ = m.fault(m.rank, reason.Error()) }

// fault keeps the first cause, and returns it.
func (r *rendezvous) fault(rank int, reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = &meet.Fault{Rank: rank, Reason: reason}
		close(r.down)
	}
	return r.err
}

func (r *rendezvous) Down() <-chan struct{} { return r.down }

func (r *rendezvous) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// group makes the ranks of a job, with shared memory inside nodes and between them.
func group(t *testing.T, nodeOf []int, change func(*Config)) []comm.Communicator {
	t.Helper()
	n := len(nodeOf)
	r := newJob(n)
	local := func(n int) []comm.Communicator {
		g, err := shm.NewLocal(n)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	flat := local(n)
	cfgs := make([]Config, n)
	p, err := newPlaces(0, nodeOf)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range p.ranks {
		var inner []comm.Communicator
		if len(ranks) == 1 {
			inner = []comm.Communicator{self.New()}
		} else {
			inner = local(len(ranks))
		}
		for l, rank := range ranks {
			cfgs[rank] = Config{Rank: rank, NodeOf: nodeOf, Inner: inner[l], Flat: flat[rank], Control: member{r, rank}}
		}
	}
	for rank := range n {
		rail, err := Rail(rank, nodeOf)
		if err != nil {
			t.Fatal(err)
		}
		if rail == nil || rail[0] != rank {
			continue
		}
		for i, c := range local(len(rail)) {
			cfgs[rail[i]].Outer = c
		}
	}
	g := make([]comm.Communicator, n)
	for rank := range g {
		if change != nil {
			change(&cfgs[rank])
		}
		c, err := New(cfgs[rank])
		if err != nil {
			t.Fatal(err)
		}
		g[rank] = c
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
