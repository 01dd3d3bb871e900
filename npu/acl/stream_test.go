//go:build cgo && linux

package acl

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// adder is a bound addition y += 1 on n floats.
func adder(t *testing.T, d *Device, n int) (y npu.Ptr, l npu.Launch) {
	t.Helper()
	desc := npu.D(npu.F32, n)
	k, err := d.Compile(npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": "affine", "alpha": 1.0, "beta": 1.0}, In: []npu.Desc{desc}, Out: []npu.Desc{desc}})
	must(t, err)
	y = alloc(t, d, int64(4*n))
	var ws npu.Ptr
	if k.Workspace() > 0 {
		ws = alloc(t, d, k.Workspace())
	}
	l, err = k.Bind([]npu.Ptr{y, y}, ws)
	must(t, err)
	return y, l
}

// read returns the first float of memory.
func read(t *testing.T, s npu.Stream, p npu.Ptr) float32 {
	t.Helper()
	b := make([]byte, 4)
	must(t, s.CopyOut(b, p), s.Sync(ctx))
	for v := range 100000 {
		if bytes.Equal(b, floats(1, func(int) float32 { return float32(v) })) {
			return float32(v)
		}
	}
	t.Fatalf("%v is no small whole number", b)
	return 0
}

func TestOrderAcrossStreams(t *testing.T) {
	d, fake := open(t)
	fake.Set("JITTER", "1")
	a, b := newStream(t, d, "a"), newStream(t, d, "b")
	y, l := adder(t, d, 16)
	e, err := d.NewEvent()
	must(t, err)
	f, err := d.NewEvent()
	must(t, err)
	defer e.Close()
	defer f.Close()
	if !e.Done() || e.Sync(ctx) != nil || b.Wait(e) != nil {
		t.Error("an event counts as reached until it is recorded")
	}
	const rounds = 40
	for range rounds { // each adds behind the other; the same events are recorded again and again
		must(t, b.Wait(f), a.Wait(f), a.Run([]npu.Launch{l}), a.Record(e), b.Wait(e), b.Run([]npu.Launch{l}), b.Record(f))
	}
	must(t, f.Sync(ctx))
	if !f.Done() || f.At() <= 0 || f.At() > time.Since(d.thread.opened)+time.Second {
		t.Errorf("done %v at %v", f.Done(), f.At())
	}
	if e.At() > f.At() {
		t.Errorf("the event before is at %v, the one behind at %v", e.At(), f.At())
	}
	if got := read(t, b, y); got != 2*rounds {
		t.Errorf("%v additions, want %d", got, 2*rounds)
	}
	must(t, a.Sync(ctx))
}

// A wait is for the Record that was the latest when it began, also when the event is recorded again before it is reached.
func TestWaitIsForTheLatestRecord(t *testing.T) {
	d, _ := open(t)
	a, b := newStream(t, d, "a"), newStream(t, d, "b")
	e, err := d.NewEvent()
	must(t, err)
	hold := make(chan struct{})
	must(t, a.Record(e))
	must(t, b.Wait(e))
	must(t, a.Do(func() error { <-hold; return nil }), a.Record(e))
	must(t, b.Sync(ctx)) // not held up by the second
	if e.Done() {
		t.Error("the second Record counts as reached")
	}
	short, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := e.Sync(short); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("sync of an event that is not reached: %v", err)
	}
	must(t, b.Wait(e)) // issued only once the Record behind the host function is
	ran := make(chan struct{})
	must(t, b.Do(func() error { close(ran); return nil }))
	select {
	case <-ran:
		t.Error("a stream did not wait for a Record that CANN has not got yet")
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	must(t, e.Sync(ctx), b.Sync(ctx), a.Sync(ctx))
	<-ran
}

func TestDoRunsInOrder(t *testing.T) {
	d, fake := open(t)
	fake.Set("DELAY", "Adds:5,Muls:5")
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	host, err := d.AllocHost(16)
	must(t, err)
	var seen []byte
	must(t, s.Run([]npu.Launch{l}), s.CopyOut(host.Host(), y), s.Do(func() error {
		seen = bytes.Clone(host.Host())
		b, err := d.Alloc(64) // a host function may use the device
		if err == nil {
			err = b.Free()
		}
		return err
	}), s.Run([]npu.Launch{l}), s.Sync(ctx))
	if want := floats(4, func(int) float32 { return 1 }); !bytes.Equal(seen, want) {
		t.Errorf("the host function saw %v", seen)
	}
	boom := errors.New("boom")
	must(t, s.Do(func() error { return boom }))
	e, err := d.NewEvent()
	must(t, err)
	_ = s.Run([]npu.Launch{l}) // skipped, or refused
	_ = s.Record(e)
	if err := e.Sync(ctx); !errors.Is(err, boom) {
		t.Errorf("an event behind an error: %v", err)
	}
	other := newStream(t, d, "other")
	must(t, other.Wait(e))
	if err := other.Sync(ctx); !errors.Is(err, boom) {
		t.Errorf("a stream that waits for an event behind an error: %v", err)
	}
	if err := s.Sync(ctx); !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "npu:0: stream s: boom") {
		t.Errorf("sync: %v", err)
	}
	must(t, s.Do(func() error { panic("aargh") }))
	if err := s.Sync(ctx); err == nil || !strings.Contains(err.Error(), "panic: aargh") {
		t.Errorf("a panic becomes %v", err)
	}
	if got := read(t, s, y); got != 2 {
		t.Errorf("%v additions, want 2", got)
	}
}

func TestSkip(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	hold := make(chan struct{})
	many := make([]npu.Launch, 1000)
	for i := range many {
		many[i] = l
	}
	ran := false
	e, err := d.NewEvent()
	must(t, err)
	must(t, s.Do(func() error { <-hold; return nil }), s.Run(many), s.Do(func() error { ran = true; return nil }), s.Record(e))
	s.Skip(true)
	close(hold)
	must(t, e.Sync(ctx), s.Sync(ctx))
	s.Skip(false)
	if got := read(t, s, y); got != 0 || ran {
		t.Errorf("%v launches ran, host function %v", got, ran)
	}
	must(t, s.Run(many), s.Sync(ctx))
	if got := read(t, s, y); got != 1000 {
		t.Errorf("%v launches ran after Skip(false)", got)
	}
}

// CANN gets launches only some hundred ahead of the device, so that a step can be abandoned.
func TestPace(t *testing.T) {
	d, fake := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	must(t, s.Sync(ctx))
	fake.Set("DELAY", "Adds:1")
	many := make([]npu.Launch, 2000)
	for i := range many {
		many[i] = l
	}
	must(t, s.Run(many))
	for read, _ := d.Launches(); ; {
		if _, n := d.Launches(); n > read && n > 10 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.Skip(true)
	must(t, s.Sync(ctx))
	s.Skip(false)
	if got := read(t, s, y); got < 1 || got > 1000 {
		t.Errorf("%v of 2000 launches ran before they were skipped", got)
	}
}

func TestProfile(t *testing.T) {
	d, fake := open(t)
	fake.Set("DELAY", "Adds:3")
	s := newStream(t, d, "s")
	_, l := adder(t, d, 4)
	s.Profile(true)
	must(t, s.Run([]npu.Launch{l, l}), s.Sync(ctx))
	got := s.Profile(false)
	if len(got) != 2 || got[0].Launch != l || got[0].Dur < 3*time.Millisecond || got[1].Begin < got[0].Begin+got[0].Dur || got[0].Begin < 0 {
		t.Errorf("samples %+v", got)
	}
	must(t, s.Run([]npu.Launch{l}), s.Sync(ctx))
	if got := s.Profile(false); len(got) != 0 {
		t.Errorf("%d samples after profiling ended", len(got))
	}
}

// Copies of page-locked memory happen late; copies of Go's memory go through the ring, of any size.
func TestCopies(t *testing.T) {
	d, fake := open(t)
	fake.Set("DELAY", "memcpy:0.3")
	s := newStream(t, d, "s")
	const n = stagingPiece*3 + 12345
	src := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	p, q := alloc(t, d, n), alloc(t, d, n)
	dst := make([]byte, n)
	must(t, s.CopyIn(p, src), s.Copy(q, p, n), s.CopyOut(dst, q))
	e, err := d.NewEvent()
	must(t, err)
	must(t, s.Record(e), e.Sync(ctx))
	if !bytes.Equal(src, dst) {
		t.Error("the copy differs")
	}
	host, err := d.AllocHost(64)
	must(t, err)
	in, out := host.Host()[:32], host.Host()[32:]
	copy(in, bytes.Repeat([]byte{7}, 32))
	must(t, s.CopyIn(p, in), s.CopyOut(out, p), s.Sync(ctx))
	if !bytes.Equal(in, out) {
		t.Errorf("got %v", out)
	}
	for range 300 { // many small ones do not fill the ring
		must(t, s.CopyIn(p, []byte{1, 2, 3, 4}))
	}
	must(t, s.Sync(ctx), s.CopyIn(p, nil), s.CopyOut(nil, p), s.Copy(p, p, 8))
	if n := fake.Stats().PageableCopies; n != 0 {
		t.Errorf("CANN got Go's memory %d times", n)
	}
	other, err := d.Alloc(8)
	must(t, err)
	for what, err := range map[string]error{
		"outside":    s.CopyIn(npu.Ptr{Buf: other, Off: 4}, make([]byte, 5)),
		"nil":        s.CopyOut(dst, npu.Ptr{}),
		"a host's":   s.CopyOut(dst[:8], npu.Ptr{Buf: host}),
		"negative":   s.Copy(npu.Ptr{Buf: other, Off: -1}, p, 1),
		"after free": func() error { must(t, other.Free(), other.Free()); return s.CopyIn(npu.Ptr{Buf: other}, []byte{1}) }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "npu:0: stream s: copy") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSyncEndsWithItsContext(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	hold := make(chan struct{})
	boom := errors.New("boom")
	must(t, s.Do(func() error { <-hold; return boom }))
	gone, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Sync(gone); err == nil || !strings.HasSuffix(err.Error(), "enough") {
			t.Errorf("got %v", err)
		}
	})
	cancel(errors.New("enough"))
	wg.Wait()
	close(hold)
	if err := s.Sync(ctx); !errors.Is(err, boom) {
		t.Errorf("the error went to a Sync that had ended: %v", err)
	}
	must(t, s.Close(), s.Close())
	if err := s.Run(nil); err == nil || !strings.Contains(err.Error(), "stream s is closed") {
		t.Errorf("run after close: %v", err)
	}
}

// A full queue makes the caller wait, and no command is lost.
func TestQueueIsFull(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	batch := []npu.Launch{l}
	for range 3 * queueLen {
		must(t, s.Run(batch))
	}
	if got := read(t, s, y); got != 3*queueLen {
		t.Errorf("%v launches, want %d", got, 3*queueLen)
	}
}

// In the steady state a launch allocates nothing in Go and calls no first phase.
func TestLaunchAllocatesNothing(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	_, l := adder(t, d, 4)
	batch := make([]npu.Launch, 100)
	for i := range batch {
		batch[i] = l
	}
	must(t, s.Run(batch), s.Sync(ctx))
	first, second := d.Launches()
	got := testing.AllocsPerRun(20, func() {
		for range 10 {
			if err := s.Run(batch); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if got > 64 { // of Sync and of marks
		t.Errorf("%v allocations for 1000 launches", got)
	}
	f, n := d.Launches()
	if f != first || n-second != 21*1000*uint64(l.(*launch).seq.Len()) {
		t.Errorf("%d first and %d second phases", f-first, n-second)
	}
}
