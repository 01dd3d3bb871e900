package tcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

// local makes a group that the test closes.
func local(t testing.TB, n int, change func(rank int, cfg *Config)) []*Comm {
	t.Helper()
	g, err := NewLocal(n, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range g {
			c.Close()
		}
	})
	group := make([]*Comm, n)
	for r, c := range g {
		group[r] = c.(*Comm)
	}
	return group
}

// each runs f for all ranks and returns their errors.
func each(g []*Comm, f func(ctx context.Context, c *Comm) error) []error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := make([]error, len(g))
	var wg sync.WaitGroup
	for i, c := range g {
		wg.Go(func() { errs[i] = f(ctx, c) })
	}
	wg.Wait()
	return errs
}

// all is each, but every rank must succeed.
func all(t testing.TB, g []*Comm, f func(ctx context.Context, c *Comm) error) {
	t.Helper()
	for r, err := range each(g, f) {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// TestVariants runs the collectives over IPv6, over several connections for each pair, without looking, and with given crossovers.
func TestVariants(t *testing.T) {
	for name, v := range map[string]struct {
		addr   string
		change func(cfg *Config)
	}{
		"ipv6":     {"[::1]:0", nil},
		"streams":  {"127.0.0.1:0", func(cfg *Config) { cfg.Streams = 3 }},
		"asleep":   {"127.0.0.1:0", func(cfg *Config) { cfg.Look = -1 }},
		"looking":  {"127.0.0.1:0", func(cfg *Config) { cfg.Look = time.Millisecond }},
		"exchange": {"127.0.0.1:0", func(cfg *Config) { cfg.Link = &link.Link{Latency: time.Second, Bandwidth: 1e9} }},
		"mesh":     {"127.0.0.1:0", func(cfg *Config) { cfg.Link = &link.Link{Bandwidth: 1e9} }},
		"measured": {"127.0.0.1:0", func(cfg *Config) { cfg.Link = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range []int{2, 3, 4} {
				g, err := newLocal(w, v.addr, func(_ int, cfg *Config) {
					if v.change != nil {
						v.change(cfg)
					}
				})
				if err != nil && name == "ipv6" {
					t.Skip("no IPv6 here: ", err)
				}
				if err != nil {
					t.Fatal(err)
				}
				var group []*Comm
				for _, c := range g {
					group = append(group, c.(*Comm))
					defer c.Close()
				}
				all(t, group, func(ctx context.Context, c *Comm) error { return commtest.Worker(ctx, c) })
			}
		})
	}
}

// TestMany opens 64 ranks in one process, beyond the number whose small calls go through rank 0.
func TestMany(t *testing.T) {
	begin := time.Now()
	g := local(t, 64, nil)
	if took := time.Since(begin); took > 20*time.Second { // a second on an idle machine
		t.Errorf("took %v", took)
	}
	t.Logf("%v to open", time.Since(begin))
	if w := g[0].Describe()[0].Algorithm(comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: 10}); w != "gather" {
		t.Errorf("a small all-reduce of 64 ranks travels by %s", w)
	}
	all(t, g, func(ctx context.Context, c *Comm) error {
		for _, n := range []int{1, 1000, 40000} {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(c.Rank() + i)
			}
			if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Sum)); err != nil {
				return err
			}
			for i := range v {
				if want := float32(63*64/2 + 64*i); v[i] != want {
					return fmt.Errorf("%d elements: [%d] is %v, want %v", n, i, v[i], want)
				}
			}
		}
		return nil
	})
}

// TestAllocations: a call allocates its handle only.
func TestAllocations(t *testing.T) {
	const runs = 200
	for _, n := range []int64{1000, 300000} {
		g := local(t, 2, nil)
		reduce := func(c *Comm) func() error {
			buf, err := c.Alloc(4 * n)
			if err != nil {
				t.Fatal(err)
			}
			m, ctx := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: n, DType: npu.F32}, context.Background()
			return func() error {
				h, err := c.AllReduce(ctx, m, comm.Sum)
				if err != nil {
					return err
				}
				return h.Wait(ctx)
			}
		}
		mine, its := reduce(g[0]), reduce(g[1])
		done := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i <= runs && err == nil; i++ { // once more: AllocsPerRun warms up
				err = its()
			}
			done <- err
		}()
		got := testing.AllocsPerRun(runs, func() {
			if err := mine(); err != nil {
				t.Error(err)
			}
		})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got > 2 { // of both ranks, which are in one process
			t.Errorf("%d elements: %v allocations a call of two ranks, want their 2 handles", n, got)
		}
	}
}

// TestWire compares the counter with what the kernel says it sent.
func TestWire(t *testing.T) {
	g := local(t, 3, func(_ int, cfg *Config) { cfg.Streams = 2 })
	before := make([]uint64, 3)
	for r, c := range g {
		before[r] = sentBytes(t, c)
	}
	all(t, g, func(ctx context.Context, c *Comm) error {
		for _, n := range []int{0, 1, 1000, 700000} {
			if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(make([]float32, n)), comm.Sum)); err != nil {
				return err
			}
		}
		to, from := (c.Rank()+1)%3, (c.Rank()+2)%3
		h, err := c.Send(ctx, comm.HostOf(make([]float32, 50000)), to)
		if err != nil {
			return err
		}
		return errors.Join(comm.Wait(ctx)(c.Recv(ctx, comm.HostOf(make([]float32, 50000)), from)), h.Wait(ctx))
	})
	for r, c := range g {
		if got, want := c.Stats().Wire, int64(sentBytes(t, c)-before[r]); got != want {
			t.Errorf("rank %d: %d bytes on the wire, the kernel sent %d", r, got, want)
		}
	}
	// A mesh of 3 ranks moves 4/3 of the memory; headers are 32 bytes a piece.
	want := int64(0)
	s := g[0].Stats()
	for _, n := range []int64{700000 * 4} {
		want += 4 * n / 3
	}
	if s.Wire < want || s.Wire > want+want/100+2*4*1000+4*50000+3000 {
		t.Errorf("%d bytes for a payload of about %d", s.Wire, want)
	}
}

// TestExchangeInPlace has sends of a rank outlast the data of its peers: the sum must not go out as input.
func TestExchangeInPlace(t *testing.T) {
	slow := &link.Link{Latency: time.Second, Bandwidth: 1e9} // exchange up to the largest crossover
	g := local(t, 4, func(_ int, cfg *Config) { cfg.Link = slow })
	const n = link.MaxCrossover/4 - 1
	all(t, g, func(ctx context.Context, c *Comm) error {
		for i := range 20 {
			v := make([]float32, n)
			for j := range v {
				v[j] = float32(c.Rank() + j%13)
			}
			if i%4 == c.Rank() {
				time.Sleep(2 * time.Millisecond)
			}
			if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Sum)); err != nil {
				return err
			}
			for j := range v {
				if want := float32(6 + 4*(j%13)); v[j] != want {
					return fmt.Errorf("call %d: [%d] is %v, want %v", i, j, v[j], want)
				}
			}
		}
		return nil
	})
}

// TestLanesAndCollectives has messages and collectives in orders in which each is in the way of the other.
func TestLanesAndCollectives(t *testing.T) {
	g := local(t, 2, nil)
	const n = 300000
	all(t, g, func(ctx context.Context, c *Comm) error {
		for round := range 5 {
			big, msg := comm.HostOf(make([]float32, n)), make([]int32, n)
			peer := 1 - c.Rank()
			if c.Rank() == 0 { // the collective is on the wire before the message
				h, err := c.AllReduce(ctx, big, comm.Sum)
				if err != nil {
					return err
				}
				for i := range msg {
					msg[i] = int32(i + round)
				}
				if err := comm.Wait(ctx)(c.Send(ctx, comm.HostOf(msg), peer)); err != nil {
					return err
				}
				if err := h.Wait(ctx); err != nil {
					return err
				}
				// Now a message is offered before the collective.
				s, err := c.Send(ctx, comm.HostOf(msg[:10]), peer)
				if err != nil {
					return err
				}
				if err := errors.Join(comm.Wait(ctx)(c.Barrier(ctx)), s.Wait(ctx)); err != nil {
					return err
				}
				continue
			}
			if err := comm.Wait(ctx)(c.Recv(ctx, comm.HostOf(msg), peer)); err != nil {
				return err
			}
			for i := range msg {
				if msg[i] != int32(i+round) {
					return fmt.Errorf("round %d: message [%d] is %d", round, i, msg[i])
				}
			}
			if err := comm.Wait(ctx)(c.AllReduce(ctx, big, comm.Sum)); err != nil {
				return err
			}
			if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
				return err
			}
			if err := comm.Wait(ctx)(c.Recv(ctx, comm.HostOf(msg[:10]), peer)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestAhead has one rank far ahead of the others with calls that it does not wait for.
func TestAhead(t *testing.T) {
	g := local(t, 3, nil)
	all(t, g, func(ctx context.Context, c *Comm) error {
		var handles []comm.Handle
		var mems [][]float32
		for i := range 30 {
			if c.Rank() == 2 && i%10 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
			v := make([]float32, 1+i*i*300)
			for j := range v {
				v[j] = float32(i + c.Rank())
			}
			h, err := c.AllReduce(ctx, comm.HostOf(v), comm.Sum)
			if err != nil {
				return err
			}
			handles, mems = append(handles, h), append(mems, v)
		}
		for i, h := range handles {
			if err := h.Wait(ctx); err != nil {
				return err
			}
			for j := i; j >= 0; j-- { // in order
				select {
				case <-handles[j].Done():
				default:
					return fmt.Errorf("call %d is over before call %d", i, j)
				}
			}
			for j, v := range mems[i] {
				if want := float32(3*i + 3); v != want {
					return fmt.Errorf("call %d: [%d] is %v, want %v", i, j, v, want)
				}
			}
		}
		return nil
	})
}

// TestBranch: a second group has an order of its own, and its failure is not that of the first.
func TestBranch(t *testing.T) {
	g := local(t, 3, nil)
	seconds := make([]*Comm, 3)
	all(t, g, func(ctx context.Context, c *Comm) error {
		for range 2 {
			b, err := comm.Branch(ctx, c)
			if err != nil {
				return err
			}
			if seconds[c.Rank()] == nil {
				seconds[c.Rank()] = b.(*Comm)
				continue
			}
			defer b.Close()
			nested, err := comm.Branch(ctx, b)
			if err != nil {
				return err
			}
			if err := errors.Join(commtest.Worker(ctx, nested), nested.Close(), commtest.Worker(ctx, b)); err != nil {
				return err
			}
		}
		b := seconds[c.Rank()]
		h, err := c.Barrier(ctx) // the two orders are independent
		if c.Rank() == 0 {
			err = errors.Join(err, comm.Wait(ctx)(b.Barrier(ctx)))
			return errors.Join(err, h.Wait(ctx))
		}
		err = errors.Join(err, h.Wait(ctx))
		return errors.Join(err, comm.Wait(ctx)(b.Barrier(ctx)))
	})
	reason := errors.New("a card is lost")
	for r, err := range each(seconds, func(ctx context.Context, b *Comm) error {
		if b.Rank() == 1 {
			b.Abort(reason)
		}
		return comm.Wait(ctx)(b.AllReduce(ctx, comm.HostOf(make([]float32, 1000)), comm.Sum))
	}) {
		var p *comm.PeerError
		switch {
		case r == 1 && !errors.Is(err, reason):
			t.Error(err)
		case r != 1 && (!errors.As(err, &p) || p.Rank != 1 || !strings.Contains(p.Reason, reason.Error())):
			t.Errorf("rank %d: %v", r, err)
		}
	}
	for _, b := range seconds {
		b.Close()
	}
	all(t, g, func(ctx context.Context, c *Comm) error { return commtest.Worker(ctx, c) })
}

// TestRanks makes two groups of some ranks of a job of four; errors name ranks of the job.
func TestRanks(t *testing.T) {
	h, err := newHub(4, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	group := make([]*Comm, 4)
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			c, err := Open(context.Background(), Config{Control: &seat{h: h, rank: r}, Ranks: []int{r % 2, r%2 + 2}, Stream: 7, Link: &localLink})
			if err != nil {
				t.Error(err)
				return
			}
			group[r] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	defer func() {
		for r, c := range group {
			c.Close()
			h.leave(r)
		}
	}()
	all(t, group, func(ctx context.Context, c *Comm) error {
		v := []int32{int32(c.jobs[c.rank])}
		if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Sum)); err != nil {
			return err
		}
		if want := int32(2*(c.jobs[c.rank]%2) + 2); v[0] != want {
			return fmt.Errorf("%d, want %d", v[0], want)
		}
		return nil
	})
	for i, err := range each([]*Comm{group[1], group[3]}, func(ctx context.Context, c *Comm) error {
		return comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(make([]float32, 1+c.rank)), comm.Sum))
	}) {
		var m *comm.MismatchError
		if !errors.As(err, &m) || m.Rank != 1+2*i || m.Peer != 3-2*i {
			t.Errorf("%v", err)
		}
	}
	group[3].leave(false)
	for r, err := range each(group[:3], func(ctx context.Context, c *Comm) error { // the job is one
		for {
			if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
				return err
			}
		}
	}) {
		if p := (*comm.PeerError)(nil); !errors.As(err, &p) || p.Rank != 3 {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestStalled: a rank that began and fell silent is named as such.
func TestStalled(t *testing.T) {
	g := local(t, 2, func(_ int, cfg *Config) { cfg.Link = &link.Link{Bandwidth: 1e9} })
	const n = 1 << 20
	call := comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: n}
	frame := make([]byte, headerBytes+1000)
	h := header{length: pieceBytes, number: 1, key: call.Key(), elems: n, phase: phaseScatter, algorithm: direct}
	h.put((*[headerBytes]byte)(frame))
	if k, e := sendFrom(g[1].others[0].lines[0].fd, unsafe.Pointer(&frame[0]), len(frame)); e != 0 || k != len(frame) {
		t.Fatal(k, e)
	}
	ctx, cancel := comm.Patient(context.Background(), 300*time.Millisecond, 20*time.Second)
	defer cancel()
	err := comm.Wait(ctx)(g[0].AllReduce(ctx, comm.HostOf(make([]float32, n)), comm.Sum))
	var e *comm.TimeoutError
	if !errors.As(err, &e) || len(e.Missing) != 0 || !slices.Equal(e.Stalled, []int{1}) || e.Silent < 300*time.Millisecond {
		t.Errorf("%v", err)
	}
}

// TestSettings: ranks with other settings do not make a group.
func TestSettings(t *testing.T) {
	for name, change := range map[string]func(rank int, cfg *Config){
		"topology": func(rank int, cfg *Config) { cfg.Topology = link.Topology(rank) },
		"ranks":    func(rank int, cfg *Config) { cfg.Ranks = []int{0, 7} },
		"streams":  func(rank int, cfg *Config) { cfg.Streams = -1 },
		"link":     func(rank int, cfg *Config) { cfg.Link = &link.Link{} },
	} {
		if g, err := NewLocal(2, change); err == nil {
			t.Errorf("%s: a group of %d", name, len(g))
		} else if !strings.HasPrefix(err.Error(), "comm: tcp: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var said []string
	local(t, 2, func(_ int, cfg *Config) {
		cfg.Topology, cfg.Warn = link.Ring, func(s string) { said = append(said, s) }
	})
	if len(said) != 1 || !strings.Contains(said[0], "ring") {
		t.Errorf("the ring warns: %q", said)
	}
}

// TestDescribe measures the link.
func TestDescribe(t *testing.T) {
	g := local(t, 3, func(_ int, cfg *Config) { cfg.Link = nil })
	for _, c := range g {
		l := comm.Describe(c)
		if len(l) != 1 || l[0].Transport != "tcp" || l[0].Ranks != 3 || l[0].Latency <= 0 || l[0].Bandwidth < 1e6 || !strings.HasPrefix(l[0].Address, "127.0.0.1:") {
			t.Errorf("%+v", l)
		}
		if c.Link() != g[0].Link() {
			t.Errorf("ranks have %v and %v", c.Link(), g[0].Link())
		}
		if !slices.ContainsFunc(l[0].Notes, func(s string) bool { return strings.HasPrefix(s, "congestion control ") }) {
			t.Errorf("%q", l[0].Notes)
		}
	}
}

// TestClosedByPeer: what has been handed to the kernel arrives, although its sender closes at once and the receiver comes late.
func TestClosedByPeer(t *testing.T) {
	g := local(t, 2, nil)
	const n = 2 << 20
	all(t, g, func(ctx context.Context, c *Comm) error {
		v := make([]float32, n)
		if c.Rank() == 0 {
			for i := range v {
				v[i] = float32(i)
			}
			h, err := c.Broadcast(ctx, comm.HostOf(v), 0)
			return errors.Join(comm.Wait(ctx)(h, err), c.Close())
		}
		h, err := c.Broadcast(ctx, comm.HostOf(v), 0)
		if err := comm.Wait(ctx)(h, err); err != nil {
			return err
		}
		for i := range v {
			if v[i] != float32(i) {
				return fmt.Errorf("[%d] is %v", i, v[i])
			}
		}
		return nil
	})
	if err := g[1].Check(); err != nil {
		t.Errorf("a peer that closed in order is no error: %v", err)
	}
}

// TestAddress: a payload begins where reduce can read it.
func TestAddress(t *testing.T) {
	b := make([]byte, 64)
	a := addressOf(b)
	if a.pointer() != unsafe.Pointer(&b[0]) || &a.bytes(3)[2] != &b[2] {
		t.Error("an address is not a pointer")
	}
	_ = reduce.Impl()
	runtime.KeepAlive(b)
}

func TestCrowded(t *testing.T) {
	for _, c := range []struct {
		ranks, inGroup, processors, machine int
		want                                bool
		what                                string
	}{
		{2, 2, 2, 2, false, "a processor for each"},
		{4, 4, 2, 2, true, "four ranks on two processors"},
		{2, 2, 1, 8, true, "two ranks bound to one"},
		{8, 1, 4, 32, false, "a rail of eight bound ranks"},
		{8, 1, 2, 2, true, "a rail of eight ranks that are not bound"},
		{8, 1, 32, 32, false, "the same on a large machine"},
	} {
		if crowded(c.ranks, c.inGroup, c.processors, c.machine) != c.want {
			t.Error(c.what)
		}
	}
	if n := processorsHere(); n < 1 {
		t.Errorf("%d processors", n)
	}
}
