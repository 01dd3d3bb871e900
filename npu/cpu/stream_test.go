//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// fillKernel binds fill of n floats with a value at a place.
func (r *rig) fill(v float64, n int, p npu.Ptr) npu.Launch {
	r.t.Helper()
	k, err := r.d.Compile(npu.Op{Kind: npu.Fill, Attrs: npu.Attrs{"value": v}, Out: []npu.Desc{npu.D(npu.F32, n)}})
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := k.Bind([]npu.Ptr{p}, npu.Ptr{})
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

func (r *rig) matmul(n int) npu.Launch {
	r.t.Helper()
	t := npu.D(npu.F32, n, n)
	k, err := r.d.Compile(npu.Op{Kind: npu.MatMul, In: []npu.Desc{t, t}, Out: []npu.Desc{t}})
	if err != nil {
		r.t.Fatal(err)
	}
	var ws npu.Ptr
	if k.Workspace() > 0 {
		ws = r.alloc(k.Workspace())
	}
	b := t.PlainBytes()
	p := r.alloc(3 * b)
	l, err := k.Bind([]npu.Ptr{p, p.At(b), p.At(2 * b)}, ws)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

func testDevice(t testing.TB) *Device {
	return open(t, npu.Options{Extra: map[string]string{"onednn": libraries(t)[0]}})
}

func TestStreamKeepsOrder(t *testing.T) {
	g := newRig(t, testDevice(t))
	p := g.alloc(400)
	var batch []npu.Launch
	for i := range 600 { // more than one chunk of commands
		batch = append(batch, g.fill(float64(i), 100, p))
	}
	seen := 0.0
	out := make([]byte, 400)
	for _, err := range []error{g.s.Run(batch), g.s.CopyOut(out, p), g.s.Do(func() error { seen = get(out, 99, npu.F32); return nil }), g.s.Run(batch[:1])} {
		if err != nil {
			t.Fatal(err)
		}
	}
	g.sync()
	if seen != 599 {
		t.Errorf("after the batch the memory held %g, want 599", seen)
	}
	if v := get(p.Buf.Host(), 0, npu.F32); v != 0 {
		t.Errorf("after the last launch the memory holds %g, want 0", v)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	g := newRig(t, testDevice(t))
	batch := []npu.Launch{g.matmul(16), g.matmul(8), g.matmul(16)}
	e, err := g.d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	step := func() {
		g.s.Run(batch)
		g.s.Record(e)
		g.s.Wait(e)
		e.Sync(ctx)
		g.s.Run(batch)
		g.s.Sync(ctx)
	}
	step()
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

func TestEventsOrderTwoStreams(t *testing.T) {
	g := newRig(t, testDevice(t))
	comm, err := g.d.NewStream("comm")
	if err != nil {
		t.Fatal(err)
	}
	ready, done := must(g.d.NewEvent())(t), must(g.d.NewEvent())(t)
	if !ready.Done() {
		t.Error("an event that was never recorded is not done")
	}
	var x atomic.Int64
	gate := make(chan struct{})
	for i := range 200 {
		if i == 0 {
			g.s.Do(func() error { <-gate; return nil })
		}
		g.s.Do(func() error { x.CompareAndSwap(int64(2*i), int64(2*i+1)); return nil })
		g.s.Record(ready)
		comm.Wait(ready)
		comm.Do(func() error { x.CompareAndSwap(int64(2*i+1), int64(2*i+2)); return nil })
		comm.Record(done)
		g.s.Wait(done)
	}
	if done.Done() {
		t.Error("done before the gate was opened")
	}
	short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := done.Sync(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync with a deadline: %v", err)
	}
	if err := g.s.Sync(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "compute") {
		t.Errorf("Sync of the stream with a deadline: %v", err)
	}
	close(gate)
	if err := done.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if x.Load() != 400 {
		t.Errorf("%d steps in order, want 400", x.Load())
	}
	if done.At() <= 0 {
		t.Error("the event has no time")
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestDelayedErrors(t *testing.T) {
	g := newRig(t, testDevice(t))
	op := npu.Op{
		Kind: npu.CrossEntropy,
		In:   []npu.Desc{npu.D(npu.F32, 4, 10), npu.D(npu.I32, 4)},
		Out:  []npu.Desc{npu.D(npu.F32), npu.D(npu.F32), npu.D(npu.F32, 4)},
	}
	op = must(g.d.Choose(op))(t)
	k := must(g.d.Compile(op))(t)
	labels := g.alloc(16)
	put(labels.Buf.Host(), 2, npu.I32, 10) // classes are 0 to 9
	var ws npu.Ptr
	if k.Workspace() > 0 {
		ws = g.alloc(k.Workspace())
	}
	l := must(k.Bind([]npu.Ptr{g.alloc(160), labels, g.alloc(4), g.alloc(4), g.alloc(16)}, ws))(t)
	ran := false
	e := must(g.d.NewEvent())(t)
	gate := make(chan struct{})
	g.s.Do(func() error { <-gate; return nil })
	for _, err := range []error{g.s.Run([]npu.Launch{l}), g.s.Do(func() error { ran = true; return nil }), g.s.Record(e)} {
		if err != nil {
			t.Fatalf("an error before its time: %v", err)
		}
	}
	close(gate)
	err := e.Sync(context.Background())
	for _, word := range []string{"stream compute", "cross_entropy", "10"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the event's error does not say %q: %v", word, err)
		}
	}
	if again := g.s.Run([]npu.Launch{l}); again == nil {
		t.Error("work was taken after an error")
	}
	if err2 := g.s.Sync(context.Background()); err2 == nil || err2.Error() != err.Error() {
		t.Errorf("Sync after an error: %v", err2)
	}
	if ran {
		t.Error("work behind an error was executed")
	}
	put(labels.Buf.Host(), 2, npu.I32, 9)
	if err := g.s.Run([]npu.Launch{l}); err != nil {
		t.Error(err)
	}
	g.sync()
	// a host function that fails or panics is the stream's error
	boom := errors.New("boom")
	g.s.Do(func() error { return boom })
	if err := g.s.Sync(context.Background()); !errors.Is(err, boom) {
		t.Errorf("a failed host function: %v", err)
	}
	g.s.Do(func() error { panic("at the disco") })
	if err := g.s.Sync(context.Background()); err == nil || !strings.Contains(err.Error(), "at the disco") {
		t.Errorf("a panic: %v", err)
	}
	g.sync()
}

func TestProfile(t *testing.T) {
	g := newRig(t, testDevice(t))
	a, b := g.matmul(256), g.matmul(64)
	g.s.Run([]npu.Launch{b})
	g.sync()
	if s := g.s.Profile(true); len(s) != 0 {
		t.Errorf("%d samples before profiling", len(s))
	}
	g.s.Run([]npu.Launch{a, b, a})
	g.sync()
	s := g.s.Profile(false)
	if len(s) != 3 || s[0].Launch != a || s[1].Launch != b {
		t.Fatalf("samples: %v", s)
	}
	for i := 1; i < 3; i++ {
		if s[i].Begin < s[i-1].Begin+s[i-1].Dur || s[i].Dur <= 0 {
			t.Errorf("sample %d begins at %v and takes %v, the one before %v and %v", i, s[i].Begin, s[i].Dur, s[i-1].Begin, s[i-1].Dur)
		}
	}
}

func TestCloseIsIdempotent(t *testing.T) {
	d := testDevice(t)
	s := must(d.NewStream("a"))(t)
	b := must(d.Alloc(1 << 20))(t)
	for range 2 {
		if err := errors.Join(s.Close(), d.Close(), b.Free()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Do(func() error { return nil }); err == nil {
		t.Error("a closed stream takes work")
	}
	for what, err := range map[string]error{"Alloc": second(d.Alloc(8)), "NewStream": second(d.NewStream("b")), "NewEvent": second(d.NewEvent()),
		"Choose": second(d.Choose(npu.Op{})), "Compile": second(d.Compile(npu.Op{}))} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s of a closed device: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Skip ends a batch between two of its kernels: this one would run for hours. What is enqueued after it is passed over too, but events are reached.
func TestSkipEndsABatch(t *testing.T) {
	g := newRig(t, testDevice(t))
	p := g.alloc(400)
	batch := make([]npu.Launch, 1<<20)
	for i, l := 0, g.matmul(512); i < len(batch); i++ {
		batch[i] = l
	}
	e, err := g.d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	begun, ran := make(chan bool), false
	for _, err := range []error{
		g.s.Do(func() error { close(begun); return nil }), g.s.Run(batch), g.s.Do(func() error { ran = true; return nil }),
		g.s.Run([]npu.Launch{g.fill(7, 100, p)}), g.s.Record(e),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	<-begun
	g.s.Skip(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(e.Sync(ctx), g.s.Sync(ctx)); err != nil {
		t.Fatal(err)
	}
	if v := get(p.Buf.Host(), 0, npu.F32); v != 0 || ran {
		t.Errorf("after Skip a kernel wrote %g, and a host function ran: %v", v, ran)
	}
	g.s.Skip(false)
	if err := g.s.Run([]npu.Launch{g.fill(7, 100, p)}); err != nil {
		t.Fatal(err)
	}
	g.sync()
	if v := get(p.Buf.Host(), 0, npu.F32); v != 7 {
		t.Errorf("after Skip(false) the memory holds %g, want 7", v)
	}
}
