package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// hub joins ranks of this process by a fake transport: calls take a random time, groups overtake each other, and what every rank issued is written down.
type hub struct {
	n      int
	seed   uint64
	branch bool // the transport can make more groups

	mu     sync.Mutex
	groups []*hubGroup
	err    error
}

// hubGroup is one order of calls.
type hubGroup struct {
	hub    *hub
	number int
	issued [][]*hubCall // by rank
	done   int          // calls that have completed
	rnd    *rand.Rand
}

type hubCall struct {
	what    comm.Call
	out, in comm.Mem
	done    chan struct{}
	err     error
}

// hubComm is a rank of a group.
type hubComm struct {
	comm.Collectives
	group    *hubGroup
	rank     int
	branches int
}

func newHub(n int, seed uint64, branch bool) *hub { return &hub{n: n, seed: seed, branch: branch} }

func (h *hub) ranks() []comm.Communicator {
	var out []comm.Communicator
	for r := range h.n {
		c := h.comm(0, r)
		if h.branch {
			out = append(out, brancher{c})
		} else {
			out = append(out, c)
		}
	}
	return out
}

func (h *hub) comm(group, rank int) *hubComm {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.groups) <= group {
		g := &hubGroup{hub: h, number: len(h.groups), issued: make([][]*hubCall, h.n), rnd: rand.New(rand.NewPCG(h.seed, uint64(100+len(h.groups))))}
		h.groups = append(h.groups, g)
	}
	c := &hubComm{group: h.groups[group], rank: rank}
	c.Issue = c.issue
	return c
}

// brancher is a hubComm of a transport that can make more groups.
type brancher struct{ *hubComm }

func (b brancher) Branch(context.Context) (comm.Communicator, error) {
	b.branches++
	return b.group.hub.comm(b.branches, b.rank), nil
}

// same compares what the ranks issued, group by group.
func (h *hub) same(coded bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if want := 1; coded && h.branch && len(h.groups) != want+1 {
		return fmt.Errorf("%d groups, want one per phase", len(h.groups))
	}
	for _, g := range h.groups {
		for r := 1; r < h.n; r++ {
			a, b := g.issued[0], g.issued[r]
			if !slices.EqualFunc(a, b, func(x, y *hubCall) bool { return x.what == y.what }) {
				return fmt.Errorf("group %d: rank 0 issued %d calls, rank %d %d, or others", g.number, len(a), r, len(b))
			}
		}
	}
	return h.err
}

// rest lets others run for a while.
func rest(rnd *rand.Rand) {
	for range rnd.IntN(4) {
		runtime.Gosched()
	}
	if rnd.IntN(200) == 0 {
		time.Sleep(50 * time.Microsecond)
	}
}

func (c *hubComm) issue(_ context.Context, what comm.Call, out, in comm.Mem) (comm.Handle, error) {
	g := c.group
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	if g.hub.err != nil {
		return nil, g.hub.err
	}
	if err := what.Check(c.rank, g.hub.n, out, in); err != nil {
		return nil, err
	}
	k := &hubCall{what: what, out: out, in: in, done: make(chan struct{})}
	g.issued[c.rank] = append(g.issued[c.rank], k)
	if at := len(g.issued[c.rank]) - 1; g.whole(at) {
		go g.complete(at)
	}
	return k, nil
}

// whole reports whether all ranks have issued a call.
func (g *hubGroup) whole(at int) bool {
	return !slices.ContainsFunc(g.issued, func(l []*hubCall) bool { return len(l) <= at })
}

// complete does a call once those before it are done.
func (g *hubGroup) complete(at int) {
	for {
		g.hub.mu.Lock()
		if g.hub.err != nil {
			g.hub.mu.Unlock()
			return
		}
		if g.done == at {
			break
		}
		g.hub.mu.Unlock()
		runtime.Gosched()
	}
	spin := g.rnd.IntN(5)
	g.hub.mu.Unlock()
	for range spin {
		runtime.Gosched()
	}
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	calls := make([]*hubCall, g.hub.n)
	for r := range calls {
		calls[r] = g.issued[r][at]
		if calls[r].what != calls[0].what {
			g.hub.breakWith(&comm.MismatchError{Peer: r, Mine: calls[0].what.String(), Its: calls[r].what.String()})
			return
		}
	}
	move(calls)
	g.done++
	for _, k := range calls {
		close(k.done)
	}
}

// move does what a call does to the memory of all ranks.
func move(calls []*hubCall) {
	n := len(calls)
	switch what := calls[0].what; {
	case what.Kind == comm.AllReduce && what.DType == npu.F64:
		fold[float64](calls)
	case what.Kind == comm.AllReduce && what.DType == npu.F32:
		fold[float32](calls)
	case what.Kind == comm.AllReduce && what.DType == npu.I64:
		fold[int64](calls)
	case what.Kind == comm.AllToAll, what.Kind == comm.AllGather:
		for r, k := range calls {
			for from, other := range calls {
				src, part := other.in.Host(), len(k.out.Host())/n
				if what.Kind == comm.AllToAll {
					src = src[r*part:][:part]
				}
				copy(k.out.Host()[from*part:][:part], src)
			}
		}
	case what.Kind == comm.Broadcast:
		for _, k := range calls {
			copy(k.out.Host(), calls[what.Root].in.Host())
		}
	default:
		panic(what.String())
	}
}

// fold combines in rank order.
func fold[T float32 | float64 | int64](calls []*hubCall) {
	for i := range comm.View[T](calls[0].in) {
		s := comm.View[T](calls[0].in)[i]
		for _, k := range calls[1:] {
			switch v := comm.View[T](k.in)[i]; calls[0].what.Op {
			case comm.Sum:
				s += v
			case comm.Max:
				s = max(s, v)
			case comm.Min:
				s = min(s, v)
			}
		}
		for _, k := range calls {
			comm.View[T](k.out)[i] = s
		}
	}
}

// breakWith ends all calls. mu is held.
func (h *hub) breakWith(err error) {
	if h.err != nil {
		return
	}
	h.err = err
	for _, g := range h.groups {
		for _, calls := range g.issued {
			for _, k := range calls[g.done:] {
				k.err = err
				close(k.done)
			}
		}
	}
}

func (c *hubComm) Rank() int         { return c.rank }
func (c *hubComm) Size() int         { return c.group.hub.n }
func (c *hubComm) Transport() string { return "hub" }
func (c *hubComm) Alloc(bytes int64) (npu.Buffer, error) {
	return comm.NewHostBuffer(make([]byte, bytes)), nil
}
func (c *hubComm) Work(string) comm.Work { return noWork{} }
func (c *hubComm) Stats() comm.Stats     { return comm.Stats{} }
func (c *hubComm) Close() error          { return nil }
func (c *hubComm) Abort(reason error) {
	c.group.hub.mu.Lock()
	defer c.group.hub.mu.Unlock()
	c.group.hub.breakWith(errors.Join(errors.New("aborted"), reason))
}

type noWork struct{}

func (noWork) Beat() {}
func (noWork) End()  {}

func (k *hubCall) Done() <-chan struct{} { return k.done }
func (k *hubCall) Wait(ctx context.Context) error {
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (k *hubCall) Took() (transfer, waited time.Duration, apart bool) {
	return time.Microsecond, 0, true
}
