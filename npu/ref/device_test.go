package ref_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

func open(t *testing.T) npu.Device {
	t.Helper()
	d, err := npu.Open("ref", npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // idempotent
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// addOne is a launch of x += 1 on the buffer.
func addOne(t *testing.T, d npu.Device, b npu.Buffer) npu.Launch {
	t.Helper()
	n := int(b.Bytes() / 4)
	op := npu.Op{
		Kind:  npu.Unary,
		Attrs: npu.Attrs{"fn": "affine", "beta": 1.0},
		In:    []npu.Desc{{Shape: npu.Shape{n}, DType: npu.F32, Layout: npu.Any}},
		Out:   []npu.Desc{{Shape: npu.Shape{n}, DType: npu.F32, Layout: npu.Any}},
	}
	op = must(d.Choose(op))
	if op.In[0].Layout != npu.Plain || op.Out[0].Layout != npu.Plain {
		t.Fatalf("chose %s", op)
	}
	k := must(d.Compile(op))
	return must(k.Bind([]npu.Ptr{{Buf: b}, {Buf: b}}, npu.Ptr{}))
}

func TestStreamOrder(t *testing.T) {
	d, ctx := open(t), context.Background()
	s := must(d.NewStream("compute"))
	b := must(d.Alloc(12))
	if uintptr(unsafe.Pointer(&b.Host()[0]))%64 != 0 {
		t.Error("not aligned to 64 bytes")
	}
	l := addOne(t, d, b)
	got, c := make([]byte, 12), must(d.Alloc(12))
	s.Profile(true)
	for _, err := range []error{
		s.CopyIn(npu.Ptr{Buf: b}, f32(1, 2, 3)), s.Run([]npu.Launch{l, l}), s.Copy(npu.Ptr{Buf: c}, npu.Ptr{Buf: b, Off: 4}, 8), s.CopyOut(got,
			npu.Ptr{Buf: c}), s.Sync(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantF32(t, got, 4, 5, 0)
	if p := s.Profile(false); len(p) != 2 || p[0].Launch != l || p[1].Begin < p[0].Begin+p[0].Dur {
		t.Errorf("profile %v", p)
	}
}

// TestEventsOrderStreams: the second stream must not start before the first, which is held back, has recorded.
func TestEventsOrderStreams(t *testing.T) {
	d, ctx := open(t), context.Background()
	a, b := must(d.NewStream("a")), must(d.NewStream("b"))
	e := must(d.NewEvent())
	if err := b.Wait(e); err != nil { // never recorded: nothing to wait for
		t.Fatal(err)
	}
	hold := make(chan bool)
	var order atomic.Int32
	a.Do(func() error { <-hold; order.CompareAndSwap(0, 1); return nil })
	a.Record(e)
	b.Wait(e)
	b.Do(func() error { order.CompareAndSwap(1, 2); return nil })
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := b.Sync(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync of a held stream: %v", err)
	}
	if err := e.Sync(short); !errors.Is(err, context.DeadlineExceeded) || e.Done() {
		t.Errorf("Sync of an event not reached: %v", err)
	}
	close(hold)
	if err := b.Sync(ctx); err != nil || order.Load() != 2 {
		t.Errorf("order %d, %v", order.Load(), err)
	}
	if !e.Done() || e.Sync(ctx) != nil || e.At() <= 0 {
		t.Errorf("event: done %v at %v", e.Done(), e.At())
	}
}

// TestDelayedError: the error of a kernel names the op, stops later work, reaches waiters, and is gone after Sync.
func TestDelayedError(t *testing.T) {
	d, ctx := open(t), context.Background()
	a, b := must(d.NewStream("a")), must(d.NewStream("b"))
	op := npu.Op{Kind: npu.TopK, Attrs: npu.Attrs{"k": 1}, In: []npu.Desc{npu.D(npu.F32, 1, 2), npu.D(npu.I32, 1)}, Out: []npu.Desc{npu.D(npu.F32)}}
	mem := must(d.Alloc(256))
	mem.Host()[64] = 9 // the label
	l := must(must(d.Compile(op)).Bind([]npu.Ptr{{Buf: mem}, {Buf: mem, Off: 64}, {Buf: mem, Off: 128}}, npu.Ptr{}))
	e := must(d.NewEvent())
	if err := a.Run([]npu.Launch{l}); err != nil {
		t.Fatal(err)
	}
	ran := false
	a.Do(func() error { ran = true; return nil })
	a.Record(e)
	b.Wait(e)
	if err := b.Sync(ctx); err == nil || !strings.Contains(err.Error(), "topk: row 0: label 9 outside") {
		t.Errorf("waiting stream: %v", err)
	}
	if err := a.Sync(ctx); err == nil || !strings.Contains(err.Error(), "stream a: ref: topk: row 0") {
		t.Errorf("stream: %v", err)
	}
	if ran {
		t.Error("work after the error ran")
	}
	if err := a.Sync(ctx); err != nil {
		t.Errorf("second Sync: %v", err)
	}
	a.Do(func() error { panic("boom") })
	if err := a.Sync(ctx); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("panic: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	d := open(t)
	s := must(d.NewStream("s"))
	b := must(d.Alloc(16))
	l := addOne(t, d, b)
	op := l.Kernel().Op()
	blocked := op.Clone()
	blocked.In[0].Layout = "nhwc"
	wrong := op.Clone()
	wrong.Out[0].Shape = npu.Shape{5}
	_, e1 := d.Alloc(-1)
	_, e2 := d.Alloc(1 << 62)
	_, e3 := d.Compile(blocked)
	_, e4 := d.Choose(wrong)
	_, e5 := l.Kernel().Bind([]npu.Ptr{{Buf: b}}, npu.Ptr{})
	_, e6 := l.Kernel().Bind([]npu.Ptr{{}, {Buf: b}}, npu.Ptr{})
	_, e7 := l.Kernel().Bind([]npu.Ptr{{Buf: b, Off: 4}, {Buf: b}}, npu.Ptr{})
	_, e8 := d.Bytes(blocked.In[0])
	_, e9 := l.Kernel().Bind([]npu.Ptr{{Buf: b}, {}}, npu.Ptr{})
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9, s.CopyIn(npu.Ptr{Buf: b, Off: 10}, make([]byte, 7)), s.CopyOut(nil, npu.Ptr{}),
		s.Copy(npu.Ptr{Buf: b}, npu.Ptr{Buf: b}, -1), s.Do(nil)} {
		if err == nil {
			t.Errorf("request %d: no error", i+1)
		}
	}
	d.Close()
	if _, err := d.Alloc(1); err == nil {
		t.Error("alloc after close")
	}
	if err := s.Run([]npu.Launch{l}); err == nil {
		t.Error("run after close")
	}
}
