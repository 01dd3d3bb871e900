package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// counting is a source whose sample i is its index, a random number of its stream and the label i.
type counting struct {
	n     int
	bad   map[int]bool
	delay func(i int)
	loads atomic.Int64
	panic int // sample that panics; 0 = none
}

func (c *counting) Name() string                 { return "counting" }
func (c *counting) Len() int                     { return c.n }
func (c *counting) Classes() []string            { return nil }
func (c *counting) Fingerprint() (string, error) { return fmt.Sprint(c.n), nil }
func (c *counting) Fields() []Field {
	return []Field{{Name: "x", Shape: []int{2}, DType: npu.F64}, {Name: "y", DType: npu.I32, Target: true}}
}

func (c *counting) Load(ctx context.Context, r *Rand, i int, dst [][]byte) error {
	c.loads.Add(1)
	if c.delay != nil {
		c.delay(i)
	}
	if c.panic > 0 && i == c.panic {
		panic("boom")
	}
	if c.bad[i] {
		return fmt.Errorf("file%d.jpg is broken", i)
	}
	binary.NativeEndian.PutUint64(dst[0], uint64(i))
	binary.NativeEndian.PutUint64(dst[0][8:], r.Uint64())
	binary.NativeEndian.PutUint32(dst[1], uint32(i))
	return nil
}

func newLoader(t testing.TB, src Source, o Options) *Loader {
	t.Helper()
	l, err := NewLoader(src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// drain reads everything as text, one line per batch.
func drain(t testing.TB, l *Loader, limit int) []string {
	t.Helper()
	var out []string
	for len(out) < limit {
		b, err := l.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%v %v last=%v valid=%d idx=%v x=%x y=%v", b.At, b.Next, b.Last, b.Valid, b.Indices, b.Fields[0], b.I32(1)))
		b.Release()
	}
	return out
}

func noLeak(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for i := 0; runtime.NumGoroutine() > before; i++ {
			if i == 100 {
				buf := make([]byte, 1<<16)
				t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

func TestOrderDoesNotDependOnWorkers(t *testing.T) {
	noLeak(t)
	jitter := func(i int) { time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond) }
	for _, tail := range []Tail{Drop, Pad, Short} {
		var want []string
		for _, workers := range []int{1, 2, 7} {
			src := &counting{n: 53, delay: jitter}
			l := newLoader(t, src, Options{Batch: 4, Rank: 1, World: 3, Seed: 3, Shuffle: true, Tail: tail, Epochs: 2, Workers: workers, Prefetch: workers})
			got := drain(t, l, 1000)
			if len(got) != 2*l.Sampler().Batches() {
				t.Fatalf("%v: %d batches, want %d", tail, len(got), 2*l.Sampler().Batches())
			}
			if want == nil {
				want = got
			} else if !slices.Equal(got, want) {
				t.Errorf("%v: %d workers give other batches than one", tail, workers)
			}
			l.Close()
		}
	}
}

func TestKillAndResume(t *testing.T) {
	opt := Options{Batch: 3, World: 2, Seed: 1, Shuffle: true, Tail: Pad, Workers: 2, Epochs: 3}
	want := drain(t, newLoader(t, &counting{n: 20}, opt), 1000)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		var got []string
		at := State{}
		for len(got) < len(want) {
			o := opt
			o.From = at
			l := newLoader(t, &counting{n: 20}, o)
			got = append(got, drain(t, l, 1+r.IntN(5))...)
			at = l.State()
			l.Close()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	}
}

func TestSeek(t *testing.T) {
	noLeak(t)
	l := newLoader(t, &counting{n: 17}, Options{Batch: 4, Shuffle: true, Tail: Short, Epochs: 1})
	defer l.Close()
	first := drain(t, l, 100)
	if _, err := l.Next(context.Background()); !errors.Is(err, io.EOF) {
		t.Fatalf("after the epoch: %v", err)
	}
	for range 3 {
		if err := l.Seek(State{}); err != nil {
			t.Fatal(err)
		}
		if got := drain(t, l, 100); !slices.Equal(got, first) {
			t.Fatalf("after Seek: %v\nwant %v", got, first)
		}
	}
	// A batch that the caller holds survives a Seek and comes back to the ring.
	if err := l.Seek(State{}); err != nil {
		t.Fatal(err)
	}
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	held := bytes.Clone(b.Fields[0])
	if err := l.Seek(State{Consumed: 8}); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, l, 100); !slices.Equal(got, first[2:]) {
		t.Errorf("from sample 8: %v\nwant %v", got, first[2:])
	}
	if !bytes.Equal(held, b.Fields[0]) {
		t.Error("a held batch changed")
	}
	b.Release()
	b.Release()
	if len(l.free) != len(l.all) {
		t.Errorf("%d of %d batches are free at the end", len(l.free), len(l.all))
	}
	if err := l.Seek(State{Consumed: 18}); err == nil {
		t.Error("a position beyond the data passes")
	}
}

func TestPadRowsCarryNoWeight(t *testing.T) {
	l := newLoader(t, &counting{n: 5}, Options{Batch: 2, Rank: 1, World: 2, Tail: Pad, Epochs: 1})
	drain(t, l, 1)
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// Positions 4…7 go to ranks 0,1,0,1; rank 1 has 5 and 7, both beyond the end: samples 0 and 2 without weight.
	if b.Valid != 0 || !slices.Equal(b.Indices, []int{0, 2}) || !slices.Equal(b.I32(1), []int32{Ignore, Ignore}) {
		t.Errorf("valid %d indices %v labels %v", b.Valid, b.Indices, b.I32(1))
	}
	if got := binary.NativeEndian.Uint64(b.Fields[0][16:]); got != 2 {
		t.Errorf("padded row holds sample %d, want a real one (2)", got)
	}
}

func TestEvaluationIsExact(t *testing.T) {
	for _, n := range []int{1, 9, 10, 11} {
		seen := make([]int, n)
		batches := map[int]bool{}
		for rank := range 3 {
			l := newLoader(t, &counting{n: n}, Options{Batch: 2, Rank: rank, World: 3, Tail: Short, Epochs: 1})
			count := 0
			for {
				b, err := l.Next(context.Background())
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				count++
				for r, i := range b.Indices {
					if r < b.Valid {
						seen[i]++
					} else if i != -1 || b.I32(1)[r] != Ignore || binary.NativeEndian.Uint64(b.Fields[0][r*16:]) != 0 {
						t.Errorf("n=%d row %d does not count but holds sample %d, label %d", n, r, i, b.I32(1)[r])
					}
				}
				b.Release()
			}
			batches[count] = true
		}
		for i, c := range seen {
			if c != 1 {
				t.Errorf("n=%d: sample %d counted %d times", n, i, c)
			}
		}
		if len(batches) != 1 {
			t.Errorf("n=%d: ranks see different numbers of batches: %v", n, batches)
		}
	}
}

func TestBadSampleIsAnError(t *testing.T) {
	noLeak(t)
	for _, workers := range []int{1, 4} {
		src := &counting{n: 40, bad: map[int]bool{13: true, 14: true, 30: true}, delay: func(i int) {
			if i == 13 {
				time.Sleep(5 * time.Millisecond) // 14 fails first, 13 is reported all the same
			}
		}}
		l := newLoader(t, src, Options{Batch: 8, Workers: workers})
		if _, err := l.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // and it stays
			_, err := l.Next(context.Background())
			if err == nil || !strings.Contains(err.Error(), "sample 13 of counting: file13.jpg is broken") || !strings.Contains(err.Error(), "hint:") {
				t.Fatalf("got %v", err)
			}
		}
		l.Close()
	}
}

func TestSkip(t *testing.T) {
	src := func() *counting { return &counting{n: 16, bad: map[int]bool{3: true, 4: true, 9: true}} }
	told := map[int]bool{}
	o := Options{Batch: 4, Seed: 2, Shuffle: true, Tail: Pad, Epochs: 2, SkipBad: 3, Workers: 3, OnSkip: func(i int, err error) { told[i] = true }}
	l := newLoader(t, src(), o)
	got := drain(t, l, 100)
	if len(got) != 8 || l.Stats().Bad != 3 || len(told) != 3 {
		t.Fatalf("%d batches, %d bad, told %v", len(got), l.Stats().Bad, told)
	}
	for _, b := range got {
		if !strings.Contains(b, "valid=4") {
			t.Errorf("a batch is not full: %s", b)
		}
	}
	o.Workers, o.OnSkip = 1, nil
	if again := drain(t, newLoader(t, src(), o), 100); !slices.Equal(again, got) {
		t.Error("skipping depends on the workers")
	}

	o.SkipBad = 2
	l = newLoader(t, src(), o)
	var err error
	for err == nil {
		var b *Batch
		if b, err = l.Next(context.Background()); err == nil {
			b.Release()
		}
	}
	for _, want := range []string{"limit of 2", "file3.jpg", "file4.jpg", "file9.jpg", "hint:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if bad := l.Bad(); len(bad) != 3 || bad[0].Index != 3 {
		t.Errorf("Bad() = %v", bad)
	}
}

func TestSkipInEvaluationLowersTheCount(t *testing.T) {
	l := newLoader(t, &counting{n: 8, bad: map[int]bool{1: true}}, Options{Batch: 4, Tail: Short, Epochs: 1, SkipBad: 1})
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if b.Valid != 3 || !slices.Equal(b.Indices[:3], []int{0, 2, 3}) && !slices.Equal(b.Indices[:3], []int{0, 3, 2}) {
		t.Errorf("valid %d, indices %v", b.Valid, b.Indices)
	}
	for r := range 3 {
		if int(b.I32(1)[r]) != b.Indices[r] {
			t.Errorf("row %d: label %d, index %d", r, b.I32(1)[r], b.Indices[r])
		}
	}
	if b.I32(1)[3] != Ignore {
		t.Errorf("row 3 has label %d", b.I32(1)[3])
	}
}

func TestAllBadEnds(t *testing.T) {
	bad := map[int]bool{0: true, 1: true, 2: true}
	l := newLoader(t, &counting{n: 3, bad: bad}, Options{Batch: 1, SkipBad: 100})
	if _, err := l.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "every sample") {
		t.Errorf("got %v", err)
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	l := newLoader(t, &counting{n: 3, panic: 2}, Options{Batch: 3})
	if _, err := l.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "sample 2 of counting: panic: boom") {
		t.Errorf("got %v", err)
	}
}

func TestNextObeysItsContext(t *testing.T) {
	noLeak(t)
	gate := make(chan struct{})
	l := newLoader(t, &counting{n: 8, delay: func(int) { <-gate }}, Options{Batch: 4, Epochs: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	close(gate)
	if got := drain(t, l, 100); len(got) != 2 || !strings.Contains(got[0], "idx=[0 1 2 3]") {
		t.Errorf("after a cancelled Next: %v", got)
	}
	if s := l.Stats(); s.Wait < 10*time.Millisecond || s.Load < 10*time.Millisecond || s.Batches != 2 || s.Samples != 8 {
		t.Errorf("stats %+v", s)
	}
	l.Close()
	if _, err := l.Next(context.Background()); err == nil {
		t.Error("Next after Close works")
	}
}

func TestHoldingEverythingIsAnError(t *testing.T) {
	l := newLoader(t, &counting{n: 100}, Options{Batch: 1, Prefetch: 1})
	for range 2 {
		if _, err := l.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "Release") {
		t.Errorf("got %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	src, err := NewSynthetic(1, 1000, 10, 3, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, src, Options{Batch: 8, Shuffle: true, Seed: 1})
	ctx := context.Background()
	next := func() {
		b, err := l.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	next()
	// An epoch is 125 batches and costs a handful of small objects for its order.
	if n := testing.AllocsPerRun(500, next); n > 0.5 {
		t.Errorf("%v allocations a batch", n)
	}
}

func TestNewLoaderRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no batch": {}, "rank": {Batch: 1, Rank: 1}, "position": {Batch: 1, From: State{Consumed: 99}}, "too large": {Batch: 9},
	} {
		if _, err := NewLoader(&counting{n: 8}, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewLoader(nil, Options{Batch: 1}); err == nil {
		t.Error("no source: no error")
	}
}

func BenchmarkLoader(b *testing.B) {
	src, _ := NewSynthetic(1, 1000, 10, 3, 32, 32)
	l := newLoader(b, src, Options{Batch: 64, Shuffle: true})
	for b.Loop() {
		x, err := l.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		x.Release()
	}
	b.ReportMetric(float64(b.N*64)/b.Elapsed().Seconds(), "samples/s")
}
