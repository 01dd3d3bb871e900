package nodes

import (
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/meet"
)

// NewLocal makes the ranks of a job in this process, for tests and examples: its nodes are no hosts, and meet in shared memory too. change, if not nil, changes
// the configuration of each rank.
func NewLocal(nodeOf []int, change func(*Config)) ([]comm.Communicator, error) {
	n := len(nodeOf)
	p, err := newPlaces(0, nodeOf)
	if err != nil {
		return nil, err
	}
	flat, err := local(n)
	if err != nil {
		return nil, err
	}
	r, cfgs := newJob(n), make([]Config, n)
	for _, ranks := range p.ranks {
		inner, err := local(len(ranks))
		if err != nil {
			return nil, err
		}
		for l, rank := range ranks {
			cfgs[rank] = Config{Rank: rank, NodeOf: nodeOf, Inner: inner[l], Flat: flat[rank], Control: member{r, rank}}
		}
	}
	for rank := range n {
		rail, err := Rail(rank, nodeOf)
		if err != nil {
			return nil, err
		}
		if rail == nil || rail[0] != rank {
			continue
		}
		outer, err := local(len(rail))
		if err != nil {
			return nil, err
		}
		for i, c := range outer {
			cfgs[rail[i]].Outer = c
		}
	}
	g := make([]comm.Communicator, n)
	for rank := range g {
		if change != nil {
			change(&cfgs[rank])
		}
		if g[rank], err = New(cfgs[rank]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// local is a group of n ranks in shared memory.
func local(n int) ([]comm.Communicator, error) {
	if n == 1 {
		return []comm.Communicator{self.New()}, nil
	}
	return shm.NewLocal(n)
}

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
