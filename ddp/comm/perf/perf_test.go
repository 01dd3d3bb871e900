package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
)

var kinds = []comm.Kind{comm.AllReduce, comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Broadcast, comm.Reduce}

// group makes w ranks.
func group(t *testing.T, w int) []comm.Communicator {
	t.Helper()
	if w == 1 {
		return []comm.Communicator{self.New()}
	}
	g, err := shm.NewLocal(w)
	if err != nil {
		t.Skip(err)
	}
	mine := slices.Clone(g) // a test may replace some
	t.Cleanup(func() {
		for _, c := range mine {
			c.Close()
		}
	})
	return g
}

// onAll runs the measurement on all ranks and returns what each has.
func onAll(t *testing.T, g []comm.Communicator, cfg func(rank int) Config) ([]*Summary, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sums, errs := make([]*Summary, len(g)), make([]error, len(g))
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() { sums[r], errs[r] = Run(ctx, c, cfg(r), nil) })
	}
	wg.Wait()
	return sums, errs
}

// Every collective, type and number of ranks is measured, with every element right, and all ranks have the same rows.
func TestRun(t *testing.T) {
	dtypes := []npu.DType{npu.F32, npu.BF16, npu.F16, npu.F64, npu.I32, npu.I64, npu.U8, npu.I8}
	for _, w := range []int{1, 2, 3} {
		g := group(t, w)
		for _, kind := range kinds {
			for i, dt := range dtypes {
				if w == 3 && i%3 != 0 { // more ranks than processors take long
					continue
				}
				cfg := Config{Kind: kind, DType: dt, Op: comm.Op(i % 3), Root: w - 1, Sizes: []int64{1, 4, 5000, 70000}, Repeat: 2, Warmup: -1, Heap: i%2 == 1}
				if w == 3 {
					cfg.Sizes = []int64{4, 100, 5000}
				}
				sums, errs := onAll(t, g, func(int) Config { return cfg })
				if err := errors.Join(errs...); err != nil {
					t.Fatalf("%v %v, %d ranks: %v", kind, dt, w, err)
				}
				for r, s := range sums {
					if s.Wrong != 0 || len(s.Rows) < 3 {
						t.Errorf("%v %v of %d ranks: %d wrong in %d rows: %+v", kind, dt, w, s.Wrong, len(s.Rows), s.Rows)
					}
					for i, row := range s.Rows {
						mine := sums[0].Rows[i]
						if row.Median != mine.Median || row.Min > row.Median || row.Median > row.P99 || row.Min < 0 || row.Elems*int64(dt.Size()) != row.Bytes {
							t.Errorf("%v %v, rank %d: %+v, on rank 0 %+v", kind, dt, r, row, mine)
						}
					}
				}
			}
		}
	}
}

// spoiled is a communicator that makes a mistake.
type spoiled struct {
	comm.Communicator
	after func(out, in comm.Mem)
}

func (s *spoiled) done(ctx context.Context, out, in comm.Mem, h comm.Handle, err error) (comm.Handle, error) {
	if err == nil {
		err = h.Wait(ctx)
	}
	if err == nil && out.Elems > 1 { // not the vote
		s.after(out, in)
	}
	return h, err
}

func (s *spoiled) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	h, err := s.Communicator.AllReduce(ctx, m, op)
	if m.DType != npu.F32 { // what the measurement itself exchanges
		return h, err
	}
	return s.done(ctx, m, m, h, err)
}

func (s *spoiled) AllGather(ctx context.Context, out, in comm.Mem) (comm.Handle, error) {
	h, err := s.Communicator.AllGather(ctx, out, in)
	return s.done(ctx, out, in, h, err)
}

// A single wrong element is found wherever it is, above or below, and so is a write to memory that is not the result's.
func TestRunFindsWhatIsWrong(t *testing.T) {
	set := func(m comm.Mem, i int64, by float32) { comm.View[float32](m)[i] += by }
	for name, c := range map[string]struct {
		kind  comm.Kind
		after func(out, in comm.Mem)
		first string
		wrong int64
	}{
		"first, above":   {comm.AllReduce, func(out, _ comm.Mem) { set(out, 0, 1) }, "element 0 is ", 3},
		"last, below":    {comm.AllReduce, func(out, _ comm.Mem) { set(out, out.Elems-1, -0.5) }, "element 9999 is ", 3},
		"of the peer":    {comm.AllGather, func(out, _ comm.Mem) { set(out, 7777, 1) }, "element 7777 is ", 3},
		"not a number":   {comm.AllReduce, func(out, _ comm.Mem) { set(out, 5, float32(nan())) }, "element 5 is NaN, not ", 3},
		"not done":       {comm.AllReduce, func(out, _ comm.Mem) { clear(out.Host()[4000:8000]) }, "element 1000 is 0, not ", -1},
		"moved":          {comm.AllReduce, func(out, _ comm.Mem) { copy(out.Host()[4096*4:], out.Host()[:4096*4]) }, "element 409", -1},
		"behind":         {comm.AllReduce, func(out, _ comm.Mem) { out.Ptr.Buf.Host()[out.Bytes()+3] ^= 1 }, "byte 3 behind the result was written", 3},
		"the input":      {comm.AllGather, func(_, in comm.Mem) { set(in, 3, 1) }, "element 3 of the memory that the call only reads", 3},
		"nothing at all": {comm.AllReduce, func(_, _ comm.Mem) {}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(t, 2)
			g[1] = &spoiled{g[1], c.after}
			sums, errs := onAll(t, g, func(int) Config {
				return Config{Kind: c.kind, DType: npu.F32, Sizes: []int64{40000}, Repeat: 2, Warmup: 1}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for r, s := range sums {
				if c.wrong >= 0 && s.Wrong != c.wrong || c.wrong < 0 && s.Wrong < 100 || s.Wrong != s.Rows[0].Wrong {
					t.Errorf("rank %d: %d wrong elements, want %d", r, s.Wrong, c.wrong)
				}
			}
			if first := sums[1].Rows[0].First; !strings.Contains(first, c.first) || (first == "") != (c.first == "") || sums[0].Rows[0].First != "" {
				t.Errorf("first: %q and %q, want %q", sums[0].Rows[0].First, first, c.first)
			}
		})
	}
}

func nan() float64 { var zero float64; return zero / zero }

// A request to stop on one rank ends the measurement on all, without breaking the group.
func TestRunStops(t *testing.T) {
	g := group(t, 3)
	var asked atomic.Int32
	sums, errs := onAll(t, g, func(rank int) Config {
		return Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: []int64{400, 4000, 40000}, Repeat: 5,
			Stop: func() bool { return rank == 2 && asked.Add(1) > 10 }}
	})
	for r := range g {
		if !errors.Is(errs[r], ErrStopped) || len(sums[r].Rows) != 1 {
			t.Errorf("rank %d: %d rows, %v", r, len(sums[r].Rows), errs[r])
		}
	}
	if _, errs := onAll(t, g, func(int) Config { return Config{Kind: comm.AllToAll, DType: npu.F32, Sizes: []int64{400}} }); errors.Join(errs...) != nil {
		t.Errorf("after the stop: %v", errs)
	}
}

// A dead rank ends the measurement of the others with an error that names it.
func TestRunWithoutAPeer(t *testing.T) {
	g := group(t, 2)
	g[1].Abort(errors.New("the disk is full"))
	_, errs := onAll(t, g[:1], func(int) Config { return Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: []int64{400}} })
	var peer *comm.PeerError
	if !errors.As(errs[0], &peer) || peer.Rank != 1 {
		t.Error(errs[0])
	}
}

// offset is a reduction that is off by a number.
type offset struct {
	c      comm.Communicator
	m      comm.Mem
	by     float32
	closed *atomic.Int32
}

func (o *offset) Reduce(ctx context.Context) error {
	err := comm.Wait(ctx)(o.c.AllReduce(ctx, o.m, comm.Sum))
	for i := range comm.View[float32](o.m) {
		comm.View[float32](o.m)[i] += o.by
	}
	return err
}

func (o *offset) Close() error { o.closed.Add(1); return nil }

// Another reduction may be off by a tolerance, and no more.
func TestRunReduce(t *testing.T) {
	for off, wrong := range map[float32]bool{0: false, 0.25: false, -0.25: false, 0.3: true, -0.3: true} {
		g := group(t, 2)
		var closed atomic.Int32
		sums, errs := onAll(t, g, func(rank int) Config {
			return Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: []int64{4000}, Repeat: 2, Warmup: -1,
				Tolerance: func(w int, top float64) float64 { return float64(w) / 8 },
				Reducer:   func(m comm.Mem) (Reduction, error) { return &offset{g[rank], m, off, &closed}, nil }}
		})
		if err := errors.Join(errs...); err != nil || (sums[0].Wrong > 0) != wrong {
			t.Errorf("off by %g: %d wrong, %v", off, sums[0].Wrong, err)
		}
		if closed.Load() != 2 {
			t.Errorf("closed %d times", closed.Load())
		}
	}
}

// other has another rank.
type other struct{ comm.Communicator }

func (other) Rank() int { return 1 }

// The ranks can agree to begin by another group.
func TestRunStart(t *testing.T) {
	g, start := group(t, 2), group(t, 2)
	sums, errs := onAll(t, g, func(rank int) Config {
		return Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: []int64{400}, Repeat: 7, Warmup: 3, Start: start[rank]}
	})
	if err := errors.Join(errs...); err != nil || sums[0].Wrong > 0 {
		t.Fatal(err)
	}
	if n, m := start[0].Stats().Calls, g[0].Stats().Calls; n != 10 || m < 10 || m > 20 {
		t.Errorf("%d calls to begin, %d that were measured", n, m)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{Kind: comm.Send, DType: npu.F32, Sizes: []int64{4}}, {Kind: comm.AllReduce, Sizes: []int64{4}}, {Kind: comm.AllReduce, DType: npu.F32},
		{Kind: comm.AllReduce, DType: npu.F32, Sizes: []int64{4}, Start: other{self.New()}},
		{Kind: comm.Broadcast, DType: npu.F32, Sizes: []int64{4}, Root: 1},
		{Kind: comm.AllGather, DType: npu.F32, Sizes: []int64{4}, Reducer: func(comm.Mem) (Reduction, error) { return nil, nil }},
	} {
		if _, err := Run(t.Context(), self.New(), cfg, nil); err == nil {
			t.Errorf("%+v was measured", cfg)
		}
	}
}

// The numbers stay exact whatever the number of ranks: what sums to more than a type can hold is held by fewer ranks.
func TestPatternIsExact(t *testing.T) {
	for _, dt := range []npu.DType{npu.F32, npu.BF16, npu.F16, npu.I8, npu.U8, npu.I32} {
		for _, w := range []int{1, 2, 7, 64, 300, 5000} {
			p := newPattern(comm.Call{Kind: comm.AllReduce, DType: dt, Elems: 10}, w)
			own := make([]byte, 5*p.size)
			sums := make([]float64, 5)
			for r := range w {
				p.fill(own, r, 3)
				for i := range sums {
					sums[i] += decode(dt, own[int64(i)*p.size:])
				}
			}
			want := p.result(0, 3)[0]
			for i, v := range sums {
				if got := decode(dt, want.seq[int64(want.at+i)*p.size:]); got != v || v > float64(limit(dt)) {
					t.Errorf("%v, %d ranks: element %d is %v, the sum is %v", dt, w, i, got, v)
				}
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	row := Row{Bytes: 1 << 20, Median: 10 * time.Millisecond, kind: comm.AllReduce, Size: 2}
	base := Summary{Rows: []Row{row}, Size: 2, call: comm.Call{Kind: comm.AllReduce}}
	for want, change := range map[string]func(*Summary){
		"allreduce of 1 MiB in 10ms: 84 % of the 1 Gbit/s that the link measured": func(s *Summary) {
			s.Levels = []Way{{Transport: "shm", Wire: 1 << 20}, {Transport: "tcp", Wire: 1 << 20, Bandwidth: 125e6}}
		},
		"84 % of the 2 Gbit/s that the link measured, which 2 ranks share": func(s *Summary) {
			s.Levels = []Way{{Transport: "tcp", Wire: 1 << 20, Bandwidth: 250e6, Sharing: 2}}
		},
		"; it gives more now than when the ranks met":                            func(s *Summary) { s.Levels = []Way{{Wire: 2 << 20, Bandwidth: 125e6}} },
		"its latency, 5ms, is the bound":                                         func(s *Summary) { s.Levels = []Way{{Wire: 100, Bandwidth: 125e6, Latency: 5 * time.Millisecond}} },
		"52 % of memory bandwidth (2 ranks copy 0.2 GB/s each at the same time)": func(s *Summary) { s.Copy = 2e8 },
		"does not tell the speed of its links":                                   func(*Summary) {},
		"one rank exchanges nothing":                                             func(s *Summary) { s.Size = 1 },
		"nothing was measured":                                                   func(s *Summary) { s.Rows = nil },
	} {
		s := base
		change(&s)
		if got := s.Verdict(); !strings.Contains(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		low, high int64
		g         Growth
		want      string
	}{
		{4 << 10, 64 << 10, Growth{Factor: 4}, "[4096 16384 65536]"}, {8, 8, Growth{Factor: 2}, "[8]"}, {1000, 1300, Growth{Step: 100}, "[1000 1100 1200 1300]"},
		{0, 8, Growth{Factor: 2}, "at least 1"}, {8, 4, Growth{Factor: 2}, "below the smallest"}, {4, 8, Growth{Factor: 1}, "a factor of at least 2"},
		{1, 1 << 40, Growth{Step: 1}, "more than 1000 sizes"}, {1 << 62, 1<<63 - 1, Growth{Factor: 4}, "[4611686018427387904]"},
	} {
		got, err := Sizes(c.low, c.high, c.g)
		if s := fmt.Sprint(got, err); !strings.Contains(s, c.want) {
			t.Errorf("%+v: %s", c, s)
		}
	}
	for text, want := range map[string]int64{"4096": 4096, "8K": 8192, "8k": 8192, "64M": 64 << 20, "64MB": 64 << 20, "64MiB": 64 << 20, "1G": 1 << 30,
		"12B": 12, "2 KiB": 2048} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "K", "1T", "-1", "1.5M", "8KK", "99999999999G", "0x10"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for n, want := range map[int64]string{5: "5 B", 4096: "4 KiB", 4097: "4097 B", 64 << 20: "64 MiB", 3 << 30: "3 GiB", 0: "0 B"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
