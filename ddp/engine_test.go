package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
)

// group makes n ranks in this process.
func group(t testing.TB, n int) []comm.Communicator {
	t.Helper()
	if n == 1 {
		return []comm.Communicator{self.New()}
	}
	g, err := shm.NewLocal(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range g {
			c.Close()
		}
	})
	return g
}

// ranks runs f for all ranks at once and gives their errors.
func ranks(t testing.TB, g []comm.Communicator, f func(c comm.Communicator) error) []error {
	t.Helper()
	errs := make([]error, len(g))
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() { errs[r] = f(c) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("a rank hangs")
	}
	return errs
}

func succeed(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func params(sizes ...int64) []ddp.Param {
	var p []ddp.Param
	for i, n := range sizes {
		p = append(p, ddp.Param{Name: fmt.Sprintf("p%d", i), Elems: n, Group: i % 2})
	}
	return p
}

// TestStep reduces with Ready calls out of order; landed buckets come in plan order with the right sums, step after step.
func TestStep(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 2, 3} {
		succeed(t, ranks(t, group(t, n), func(c comm.Communicator) error {
			var landed []int
			e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(1000, 70000, 5, 90000, 300, 7), BucketMB: 0.3, FirstBucketMB: 0.01,
				OnBucket: func(k int, _ comm.Mem, _ npu.Event) error { landed = append(landed, k); return nil }})
			if err != nil {
				return err
			}
			defer e.Close()
			if k := len(e.Buckets()); k < 3 {
				return fmt.Errorf("only %d buckets: the test wants several", k)
			}
			for step := range int64(4) {
				if err := e.Begin(step, true); err != nil {
					return err
				}
				for j := range 6 {
					i := (j*5 + 3 + c.Rank()) % 6
					g := e.GradF32(i)
					for x := range g {
						g[x] = float32(c.Rank()+1) * float32(step) * float32(i+1)
					}
					if err := e.Ready(i); err != nil {
						return err
					}
				}
				st, err := e.Wait(ctx)
				if err != nil {
					return err
				}
				if st.Step != step || st.Buckets != len(e.Buckets()) || st.Bytes < 4*160000 {
					return fmt.Errorf("stats %+v", st)
				}
				for i := range 6 {
					want := float32(n*(n+1)/2) * float32(step) * float32(i+1)
					if g := e.GradF32(i); slices.Min(g) != want || slices.Max(g) != want {
						return fmt.Errorf("step %d gradient %d: %v to %v, want %v", step, i, slices.Min(g), slices.Max(g), want)
					}
				}
			}
			for i, k := range landed {
				if k != i%len(e.Buckets()) {
					return fmt.Errorf("buckets landed as %v", landed)
				}
			}
			return nil
		}))
	}
}

// TestAccumulate checks that only the last micro-batch is reduced.
func TestAccumulate(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(10)})
		if err != nil {
			return err
		}
		defer e.Close()
		before := c.Stats().Calls
		if err := e.Zero(ctx); err != nil {
			return err
		}
		for m := range 3 {
			if err := e.Begin(0, m == 2); err != nil {
				return err
			}
			e.GradF32(0)[3]++
			if err := e.Ready(0); err != nil {
				return err
			}
		}
		if _, err := e.Wait(ctx); err != nil {
			return err
		}
		if got, calls := e.GradF32(0)[3], c.Stats().Calls-before; got != 6 || calls != 1 {
			return fmt.Errorf("gradient %v after %d calls, want 6 after 1", got, calls)
		}
		return nil
	}))
}

// event is an npu.Event that the test fires.
type event struct{ ch chan struct{} }

func (e *event) Done() bool { return false }
func (e *event) Sync(ctx context.Context) error {
	select {
	case <-e.ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (e *event) At() time.Duration { return 0 }
func (e *event) Close() error      { return nil }

var _ npu.Event = (*event)(nil)

// TestEvents checks that a bucket waits for its event, that ReadyBucket does not, and that order holds.
func TestEvents(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		spans := make(chan ddp.Span, 100)
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(70000, 80000), BucketMB: 0.3, FirstBucketMB: 0.3, Trace: func(s ddp.Span) { spans <- s }})
		if err != nil {
			return err
		}
		defer e.Close()
		ev, before := &event{make(chan struct{})}, c.Stats().Calls
		if err := errors.Join(e.Begin(0, true), e.ReadyBucket(0, ev), e.ReadyBucket(1, nil)); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if n := c.Stats().Calls - before; n > 0 {
			return fmt.Errorf("%d calls before the event", n)
		}
		begin := time.Now()
		close(ev.ch)
		if _, err := e.Wait(ctx); err != nil {
			return err
		}
		close(spans)
		var what []string
		for s := range spans {
			what = append(what, fmt.Sprint(s.What, s.Bucket))
			if s.What == "reduce" && s.Begin.Before(begin) {
				return errors.New("reduced before the event")
			}
		}
		want := []string{"ready0", "ready1", "event0", "reduce0", "reduce1", "wait-1"}
		if !slices.Equal(what, want) {
			return fmt.Errorf("spans %v, want %v", what, want)
		}
		return nil
	}))
}

// A backward pass may take longer than a peer may be silent: the deadline of a collective is not that of the device.
func TestSlowDevice(t *testing.T) {
	const timeout = 50 * time.Millisecond
	e, err := ddp.New(t.Context(), ddp.Config{Comm: self.New(), Params: params(4), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ev := &event{ch: make(chan struct{})}
	if err := errors.Join(e.Begin(1, true), e.ReadyBucket(0, ev)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * timeout)
	close(ev.ch)
	if _, err := e.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOverlap shows that a slow transport runs while gradients are computed: reduce k begins before gradient k+1 is ready, and at the end of the
// backward all but the last bucket may have landed.
func TestOverlap(t *testing.T) {
	ctx := context.Background()
	const elems = 25000 // 100 kB: 10 ms at 10 MB/s
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		var mu sync.Mutex
		var spans []ddp.Span
		e, err := ddp.New(ctx, ddp.Config{Comm: commtest.Slow(c, 10e6), Params: params(elems, elems, elems, elems), BucketMB: 0.1, FirstBucketMB: 0.1,
			Trace: func(s ddp.Span) { mu.Lock(); spans = append(spans, s); mu.Unlock() }})
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Begin(0, true); err != nil {
			return err
		}
		landed := func(k int) bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(spans, func(s ddp.Span) bool { return s.What == "reduce" && s.Bucket == k })
		}
		for i := range 4 {
			// "Compute" until the bucket before has landed: compute that takes longer than communication.
			for i > 0 && !landed(i-1) {
				time.Sleep(time.Millisecond)
			}
			if err := e.Ready(i); err != nil {
				return err
			}
		}
		st, err := e.Wait(ctx)
		if err != nil {
			return err
		}
		find := func(what string, k int) ddp.Span {
			i := slices.IndexFunc(spans, func(s ddp.Span) bool { return s.What == what && s.Bucket == k })
			return spans[i]
		}
		mu.Lock()
		defer mu.Unlock()
		var total time.Duration
		for k := range 4 {
			total += find("reduce", k).End.Sub(find("reduce", k).Begin)
			if k > 0 && !find("reduce", k-1).End.Before(find("ready", k).Begin) {
				return fmt.Errorf("reduce %d was not hidden behind gradient %d", k-1, k)
			}
		}
		// What is exposed is about the last bucket, a quarter of all: certainly not the whole.
		if st.Exposed > total*3/4 {
			return fmt.Errorf("exposed %v of %v", st.Exposed, total)
		}
		return nil
	}))
}

// TestAgree is about sums, flags and steps.
// TestTraceMayCall wants a trace function to be free to ask the engine: it must not be called under the engine's lock.
func TestTraceMayCall(t *testing.T) {
	for name, byBucket := range map[string]bool{"Ready": false, "ReadyBucket": true} {
		t.Run(name, func(t *testing.T) {
			var e *ddp.Engine
			var seen sync.Map
			e, err := ddp.New(t.Context(), ddp.Config{Comm: self.New(), Params: params(100, 200), Trace: func(s ddp.Span) {
				seen.Store(s.What, true)
				e.Err()
			}})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				err := e.Begin(0, true)
				for i := range 2 {
					if !byBucket {
						err = errors.Join(err, e.Ready(i))
					}
				}
				for k := range e.Buckets() {
					if byBucket {
						err = errors.Join(err, e.ReadyBucket(k, nil))
					}
				}
				_, werr := e.Wait(t.Context())
				done <- errors.Join(err, werr, e.Close())
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the engine hangs in its trace function")
			}
			for _, what := range []string{"ready", "reduce", "wait"} {
				if _, ok := seen.Load(what); !ok {
					t.Errorf("no span %q", what)
				}
			}
		})
	}
}

func TestAgree(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 3), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(1)})
		if err != nil {
			return err
		}
		defer e.Close()
		r := c.Rank()
		v, err := e.Agree(ctx, ddp.Vote{Count: float64(r + 1), LossSum: 0.5, Stop: r == 2, NonFinite: r != 1, Sums: []float64{float64(r), 1}})
		if err != nil {
			return err
		}
		if v.Count != 6 || v.LossSum != 1.5 || !slices.Equal(v.Stop, []int{2}) || !slices.Equal(v.NonFinite, []int{0, 2}) || v.Failed != nil ||
			!slices.Equal(v.Sums, []float64{3, 3}) ||
			!v.Any() {
			return fmt.Errorf("%+v", v)
		}
		if v, err = e.Agree(ctx, ddp.Vote{}); err != nil || v.Any() || v.Count != 0 {
			return fmt.Errorf("%+v %v", v, err)
		}
		// Rank 1 takes a step more than the others.
		if r == 1 {
			if err := errors.Join(e.Begin(7, false), e.Ready(0)); err != nil {
				return err
			}
		}
		if _, err := e.Agree(ctx, ddp.Vote{}); err == nil || !strings.Contains(err.Error(), "rank 0 at step 0, rank 1 at step 7") {
			return fmt.Errorf("out of step: %v", err)
		}
		return nil
	}))
}

// TestSameOnAllRanks is about New, Broadcast and CheckState.
func TestSameOnAllRanks(t *testing.T) {
	ctx := context.Background()
	errs := ranks(t, group(t, 3), func(c comm.Communicator) error {
		sizes := []int64{5, 6}
		if c.Rank() == 2 {
			sizes[1] = 8
		}
		_, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(sizes...)})
		return err
	})
	for r, err := range errs {
		for _, s := range []string{"ddp: rank", "p1 f32[6]", "p1 f32[8]", "rank 2", "[2]", "hint"} {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("rank %d: %v lacks %q", r, err, s)
			}
		}
	}
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(5), Same: []comm.Item{{Name: "version", Text: "1"}}})
		if err != nil {
			return err
		}
		defer e.Close()
		w, m := []float32{float32(c.Rank()), 2}, []float32{3}
		state := []ddp.Named{{Name: "weight", Mem: comm.HostOf(w)}, {Name: "momentum", Mem: comm.HostOf(m)}}
		if err := e.Broadcast(ctx, state...); err != nil {
			return err
		}
		if err := e.CheckState(ctx, state...); err != nil || w[0] != 0 {
			return fmt.Errorf("%v %v", w, err)
		}
		if c.Rank() == 1 {
			m[0] = 4
		}
		err = e.CheckState(ctx, state...)
		var ce *comm.ConsensusError
		if !errors.As(err, &ce) || ce.Index != 1 || !slices.Equal(ce.Ranks, []int{1}) || !strings.Contains(err.Error(), "momentum") {
			return fmt.Errorf("drift: %v", err)
		}
		return nil
	}))
}

// TestMisuse is about calls at the wrong time and wrong arguments.
func TestMisuse(t *testing.T) {
	ctx := context.Background()
	lacks := func(name string, err error, parts ...string) {
		t.Helper()
		for _, s := range append(parts, "ddp: ") {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v lacks %q", name, err, s)
			}
		}
	}
	for name, cfg := range map[string]ddp.Config{
		"comm":   {Params: params(1)},
		"mb":     {Comm: self.New(), BucketMB: -1},
		"first":  {Comm: self.New(), BucketMB: 1, FirstBucketMB: 2},
		"twice":  {Comm: self.New(), Params: []ddp.Param{{Name: "a", Elems: 1}, {Name: "a", Elems: 1}}},
		"empty":  {Comm: self.New(), Params: []ddp.Param{{Name: "a"}}},
		"dtype":  {Comm: self.New(), Params: []ddp.Param{{Name: "a", Elems: 1, DType: 99}}},
		"millis": {Comm: self.New(), Timeout: -1},
	} {
		_, err := ddp.New(ctx, cfg)
		lacks(name, err)
	}
	e, err := ddp.New(ctx, ddp.Config{Comm: self.New(), Params: params(3, 4)})
	if err != nil {
		t.Fatal(err)
	}
	lacks("ready", e.Ready(0), "hint")
	_, err = e.Wait(ctx)
	lacks("wait", err, "hint")
	if err := e.Begin(5, true); err != nil {
		t.Fatal(err)
	}
	lacks("begin", e.Begin(6, true), "step 5")
	lacks("index", e.Ready(2))
	lacks("bucket", e.ReadyBucket(9, nil))
	if err := e.Ready(1); err != nil {
		t.Fatal(err)
	}
	lacks("twice", e.Ready(1), "p1", "step 5")
	lacks("twice", e.ReadyBucket(0, nil), "bucket 0")
	_, err = e.Agree(ctx, ddp.Vote{})
	lacks("agree", err, "hint")
	lacks("broadcast", e.Broadcast(ctx), "hint")
	_, err = e.Wait(ctx)
	lacks("unready", err, "p0", "step 5", "hint")
	lacks("after", e.Begin(6, true), "p0")
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := e.Begin(0, true); !errors.Is(err, ddp.ErrClosed) {
		t.Error(err)
	}
}

// TestFailures: whatever goes wrong on one rank, both come back with an error that says where and why.
func TestFailures(t *testing.T) {
	ctx := context.Background()
	boom := errors.New("boom")
	for name, bad := range map[string]struct {
		cfg  func(c comm.Communicator, cfg *ddp.Config)
		step func(e *ddp.Engine) // on rank 1, instead of Ready(1)
		want string              // in the error of rank 0
	}{
		"callback": {cfg: func(c comm.Communicator, cfg *ddp.Config) {
			if c.Rank() == 1 {
				cfg.OnBucket = func(int, comm.Mem, npu.Event) error { return boom }
			}
		}, step: func(e *ddp.Engine) { e.Ready(1) }, want: "boom"},
		"unready": {step: func(e *ddp.Engine) {}, want: "p1"},
		"abort":   {step: func(e *ddp.Engine) { e.Comm().Abort(boom) }, want: "boom"},
		"close":   {step: func(e *ddp.Engine) { e.Comm().Close() }, want: "rank 1"},
		"late": {cfg: func(c comm.Communicator, cfg *ddp.Config) { cfg.Timeout = 200 * time.Millisecond },
			step: func(e *ddp.Engine) { time.Sleep(500 * time.Millisecond); e.Ready(1) }, want: "rank"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ranks(t, group(t, 2), func(c comm.Communicator) error {
				cfg := ddp.Config{Comm: c, Params: params(70000, 80000), BucketMB: 0.3, FirstBucketMB: 0.3}
				if bad.cfg != nil {
					bad.cfg(c, &cfg)
				}
				e, err := ddp.New(ctx, cfg)
				if err != nil {
					return err
				}
				defer e.Close()
				for s := range int64(3) {
					if err := errors.Join(e.Begin(s, true), e.Ready(0)); err != nil {
						return err
					}
					if s == 1 && c.Rank() == 1 {
						bad.step(e)
					} else if err := e.Ready(1); err != nil {
						return err
					}
					if _, err := e.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			for r, err := range errs {
				if err == nil {
					t.Errorf("rank %d sees no error", r)
				}
			}
			if errs[0] != nil && !strings.Contains(errs[0].Error(), bad.want) {
				t.Errorf("rank 0: %v lacks %q", errs[0], bad.want)
			}
			t.Log(errs[0])
			t.Log(errs[1])
		})
	}
}

// TestWaitContext: a Wait that gives up may be repeated.
func TestWaitContext(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(10)})
		if err != nil {
			return err
		}
		defer e.Close()
		if c.Rank() == 1 {
			time.Sleep(100 * time.Millisecond)
		}
		if err := errors.Join(e.Begin(0, true), e.Ready(0)); err != nil {
			return err
		}
		if c.Rank() == 0 {
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if _, err := e.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
		}
		_, err = e.Wait(ctx)
		return err
	}))
}

// TestCloseInStep: Close in the middle of a step comes back, here and there.
func TestCloseInStep(t *testing.T) {
	ctx := context.Background()
	errs := ranks(t, group(t, 2), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(70000, 80000), BucketMB: 0.3, FirstBucketMB: 0.3})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			e.Begin(0, true)
			e.Ready(0)
			return e.Close()
		}
		time.Sleep(20 * time.Millisecond)
		defer e.Close()
		if err := errors.Join(e.Begin(0, true), e.Ready(0), e.Ready(1)); err != nil {
			return err
		}
		_, err = e.Wait(ctx)
		return err
	})
	if errs[0] == nil || errs[1] != nil {
		t.Error(errs)
	}
}

// TestAllocations bounds what a step leaves to the garbage collector: handles and deadlines, the same for every step.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 2} {
		succeed(t, ranks(t, group(t, n), func(c comm.Communicator) error {
			e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(70000, 80000), BucketMB: 0.3, FirstBucketMB: 0.3})
			if err != nil {
				return err
			}
			defer e.Close()
			step := func() {
				err = errors.Join(err, e.Begin(0, true), e.Ready(0), e.Ready(1))
				_, werr := e.Wait(ctx)
				_, aerr := e.Agree(ctx, ddp.Vote{Count: 1})
				err = errors.Join(err, werr, aerr)
			}
			const runs = 50
			if c.Rank() > 0 { // AllocsPerRun counts the whole process: one rank measures
				for range runs + 1 {
					step()
				}
				return err
			}
			if got := testing.AllocsPerRun(runs, step); got > float64(60*n) {
				t.Errorf("%d ranks: %v allocations per step, want at most %d", n, got, 60*n)
			}
			return err
		}))
	}
}

// TestVote: with VoteFirst no bucket is reduced before the vote, which comes back while gradients are still missing.
func TestVote(t *testing.T) {
	ctx := context.Background()
	succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
		e, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params(70000, 80000), BucketMB: 0.3, FirstBucketMB: 0.3, VoteFirst: true})
		if err != nil {
			return err
		}
		defer e.Close()
		for step := range int64(3) {
			if err := errors.Join(e.Begin(step, true), e.Ready(0)); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
			before := c.Stats().Calls
			v, err := e.Vote(ctx, ddp.Vote{Count: 3, NonFinite: c.Rank() == 1})
			if err != nil {
				return err
			}
			if v.Count != 6 || !slices.Equal(v.NonFinite, []int{1}) {
				return fmt.Errorf("%+v", v)
			}
			if step == 0 && before > 3 { // New made up to three
				return fmt.Errorf("%d calls before the vote", before)
			}
			if _, err := e.Vote(ctx, ddp.Vote{}); err == nil {
				return errors.New("voted twice")
			}
			if err := e.Ready(1); err != nil {
				return err
			}
			if _, err := e.Wait(ctx); err != nil {
				return err
			}
			if _, err := e.Vote(ctx, ddp.Vote{}); err == nil {
				return errors.New("voted outside of a step")
			}
		}
		if err := errors.Join(e.Begin(3, true), e.Ready(0), e.Ready(1)); err != nil {
			return err
		}
		if _, err := e.Wait(ctx); err == nil || !strings.Contains(err.Error(), "Vote") {
			return fmt.Errorf("Wait without a vote: %v", err)
		}
		return nil
	}))
}
