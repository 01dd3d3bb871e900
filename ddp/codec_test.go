package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// parts is a codec that changes no number: it exchanges parts, sums them in rank order and gathers the sums. It writes down how it is called.
type parts struct {
	mem   []comm.Mem
	sent  [][]float32 // by bucket: what the others sent of this rank's part
	w, me int

	mu      sync.Mutex
	busy    map[int]bool
	log     []string
	raw     int64
	fail    func(what string, k, phase int) error
	settled []bool
	opened  bool
}

func (p *parts) Name() string { return "parts" }
func (p *parts) Phases() int  { return 2 }
func (p *parts) Open(_ *bucket.Plan, mem []comm.Mem, c comm.Communicator) error {
	p.mem, p.w, p.me, p.busy, p.opened = mem, c.Size(), c.Rank(), map[int]bool{}, true
	for _, m := range mem {
		p.sent = append(p.sent, make([]float32, m.Elems))
	}
	return p.failed("open", 0, 0)
}

func (p *parts) Begin(step int64, scale float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw = 0
	p.log = append(p.log, fmt.Sprintf("begin %d scale %g", step, scale))
}

func (p *parts) failed(what string, k, phase int) error {
	if p.fail == nil {
		return nil
	}
	return p.fail(what, k, phase)
}

// alone checks that no two calls for one bucket overlap.
func (p *parts) alone(k int) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[k] {
		panic("two calls for one bucket")
	}
	p.busy[k] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy[k] = false
	}
}

func (p *parts) Prepare(k, phase int) (call comm.Call, out, in comm.Mem, err error) {
	defer p.alone(k)()
	m, sent := p.mem[k], comm.HostOf(p.sent[k])
	part := m.Elems / int64(p.w)
	mine := m.Slice(int64(p.me)*part, part)
	if phase == 0 {
		return comm.Call{Kind: comm.AllToAll, DType: npu.F32, Elems: m.Elems}, sent, m, p.failed("prepare", k, phase)
	}
	sum := comm.View[float32](mine)
	for i := range sum {
		sum[i] = 0
		for r := range p.w {
			sum[i] += p.sent[k][int64(r)*part+int64(i)]
		}
	}
	return comm.Call{Kind: comm.AllGather, DType: npu.F32, Elems: m.Elems}, m, mine, p.failed("prepare", k, phase)
}

func (p *parts) Finish(k int) error {
	defer p.alone(k)()
	p.mu.Lock()
	p.raw += p.mem[k].Bytes()
	p.mu.Unlock()
	return p.failed("finish", k, 1)
}

func (p *parts) Settle(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = append(p.settled, ok)
}

func (p *parts) Coded() ddp.Coded { return ddp.Coded{Raw: p.raw, Sent: p.raw / 2} }
func (p *parts) Close() error     { p.opened = false; return nil }

// fillGrads gives every gradient of a rank numbers of its own.
func fillGrads(e *ddp.Engine, rank int, step int64, n int) {
	for i := range n {
		for x, g := 0, e.GradF32(i); x < len(g); x++ {
			g[x] = float32(rank+1)*0.1 + float32(i)*0.7 + float32(step)*0.01 + float32(x%13)
		}
	}
}

// TestCodecIsEqualToNone runs steps with and without the codec that changes no number: sums are equal bit by bit, with a group per phase and with one group.
func TestCodecIsEqualToNone(t *testing.T) {
	ctx := context.Background()
	sizes := []int64{1000, 70000, 5, 90000, 300, 7}
	for _, n := range []int{1, 2, 3} {
		for _, one := range []bool{false, true} {
			succeed(t, ranks(t, group(t, n), func(c comm.Communicator) error {
				if one {
					c = struct{ comm.Communicator }{c} // hides Branch
				}
				plain, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(sizes...), BucketMB: 0.3, FirstBucketMB: 0.01})
				if err != nil {
					return err
				}
				defer plain.Close()
				p := &parts{}
				coded, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(sizes...), BucketMB: 0.3, FirstBucketMB: 0.01, Codec: p, CodecFrom: 2})
				if err != nil {
					return err
				}
				for step := range int64(4) {
					var stats [2]ddp.StepStats
					for j, e := range []*ddp.Engine{plain, coded} {
						if err := e.Begin(step, true); err != nil {
							return err
						}
						fillGrads(e, c.Rank(), step, len(sizes))
						for i := range sizes {
							if err := e.Ready(i); err != nil {
								return err
							}
						}
						if stats[j], err = e.Wait(ctx); err != nil {
							return err
						}
					}
					for i := range sizes {
						if !slices.Equal(plain.GradF32(i), coded.GradF32(i)) {
							return fmt.Errorf("step %d: gradient %d differs", step, i)
						}
					}
					if used := stats[1].Coded.Raw > 0; used != (step >= 2 && n > 1) {
						return fmt.Errorf("step %d of %d ranks used the codec: %v", step, n, used)
					}
					if stats[1].Buckets != stats[0].Buckets || stats[1].Bytes != stats[0].Bytes {
						return fmt.Errorf("stats %+v and %+v", stats[0], stats[1])
					}
				}
				if (coded.Codec() != nil) != (n > 1) {
					return fmt.Errorf("codec %v with %d ranks", coded.Codec(), n)
				}
				if err := coded.Close(); err != nil || p.opened {
					return fmt.Errorf("closing: %v, codec open: %v", err, p.opened)
				}
				return nil
			}))
		}
	}
}

// TestSettle: every coded step is settled once, as applied unless something else is said, and the codec knows the loss scale.
func TestSettle(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		p := &parts{}
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(100), Codec: p, CodecFrom: 1})
		if err != nil {
			return err
		}
		defer e.Close()
		p.settled, p.log = nil, nil
		for step := range int64(5) {
			e.LossScale(float64(int64(1) << step))
			for _, last := range []bool{false, true} { // two micro-batches
				if err := e.Begin(step, last); err != nil {
					return err
				}
			}
			e.Settle(false) // nothing to settle yet: it must not reach the codec
			if err := e.Ready(0); err != nil {
				return err
			}
			if _, err := e.Wait(ctx); err != nil {
				return err
			}
			if step == 2 {
				e.Settle(false)
				e.Settle(true) // the first word counts
			}
		}
		if want := []bool{true, false, true}; !slices.Equal(p.settled, want) {
			return fmt.Errorf("settled %v, want %v", p.settled, want)
		}
		if want := []string{"begin 1 scale 2", "begin 2 scale 4", "begin 3 scale 8", "begin 4 scale 16"}; !slices.Equal(p.log, want) {
			return fmt.Errorf("%q, want %q", p.log, want)
		}
		return nil
	}))
}

// TestCodecErrors: an error of the codec breaks the engines of all ranks and names codec, step and bucket.
func TestCodecErrors(t *testing.T) {
	ctx := context.Background()
	for _, what := range []string{"prepare 0", "prepare 1", "finish 1", "open 0"} {
		errs := ranks(t, group(t, 2), func(c comm.Communicator) error {
			on := false
			p := &parts{}
			if c.Rank() == 1 || what == "open 0" {
				p.fail = func(at string, k, phase int) error {
					if (on || at == "open") && fmt.Sprintf("%s %d", at, phase) == what && k == 0 {
						return errors.New("out of paper")
					}
					return nil
				}
			}
			e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(100, 200), Codec: p})
			if err != nil {
				return err
			}
			defer e.Close()
			on = true
			if err := e.Begin(3, true); err != nil {
				return err
			}
			for i := range 2 {
				if err := e.Ready(i); err != nil {
					return err
				}
			}
			_, err = e.Wait(ctx)
			return err
		})
		if err := errs[1]; err == nil || !strings.Contains(err.Error(), "codec parts") || !strings.Contains(err.Error(), "out of paper") ||
			what != "open 0" && !strings.Contains(err.Error(), "rank 1 step 3 bucket 0 (p0 … p1)") {
			t.Errorf("%s: rank 1 says %v", what, err)
		}
		if err := errs[0]; what == "finish 1" { // the last bucket's collectives are over: rank 0 has its sums
		} else if err == nil || !strings.Contains(err.Error(), "out of paper") {
			t.Errorf("%s: rank 0 says %v", what, err)
		}
	}
}

// TestCodecsDiffer: ranks with different codecs do not begin.
func TestCodecsDiffer(t *testing.T) {
	for r, err := range ranks(t, group(t, 2), func(c comm.Communicator) error {
		cfg := ddp.Config{Comm: c, Params: params(100)}
		if c.Rank() == 1 {
			cfg.Codec, cfg.CodecFrom = &parts{}, 100
		}
		e, err := ddp.New(context.Background(), cfg)
		if err == nil {
			e.Close()
		}
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "codec") || !strings.Contains(err.Error(), "parts from step 100") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestOrderOfIssue: whatever the timing of ranks, gradients and transport, every group sees the same calls in the same order on all ranks.
func TestOrderOfIssue(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 0))
		n, coded, vote := 2+rnd.IntN(2), rnd.IntN(4) > 0, rnd.IntN(2) == 0
		sizes := make([]int64, 1+rnd.IntN(6))
		for i := range sizes {
			sizes[i] = 1 + rnd.Int64N(400)
		}
		hub := newHub(n, seed, rnd.IntN(4) > 0)
		succeed(t, ranks(t, hub.ranks(), func(c comm.Communicator) error { return chaos(c, sizes, coded, vote, seed) }))
		if err := hub.same(coded); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// chaos does two steps with gradients in a random order, and checks the sums.
func chaos(c comm.Communicator, sizes []int64, coded, vote bool, seed uint64) error {
	ctx := context.Background()
	cfg := ddp.Config{Comm: c, Params: params(sizes...), BucketMB: 0.001, VoteFirst: vote}
	if coded {
		cfg.Codec = &parts{}
	}
	e, err := ddp.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	rnd := rand.New(rand.NewPCG(seed, uint64(c.Rank()+1)))
	for step := range int64(2) {
		if err := e.Begin(step, true); err != nil {
			return err
		}
		fillGrads(e, c.Rank(), step, len(sizes))
		at := rnd.IntN(len(sizes) + 1)
		for j, i := range append(rnd.Perm(len(sizes)), -1) {
			if vote && j == at {
				if _, err := e.Vote(ctx, ddp.Vote{Count: 1}); err != nil {
					return err
				}
			}
			rest(rnd)
			if i >= 0 {
				if err := e.Ready(i); err != nil {
					return err
				}
			}
		}
		if _, err := e.Wait(ctx); err != nil {
			return err
		}
		for i := range sizes {
			g := e.GradF32(i)
			for x := range g {
				want := float32(0)
				for r := range c.Size() {
					want += float32(r+1)*0.1 + float32(i)*0.7 + float32(step)*0.01 + float32(x%13)
				}
				if g[x] != want {
					return fmt.Errorf("step %d gradient %d[%d] is %v, want %v", step, i, x, g[x], want)
				}
			}
		}
	}
	return nil
}
