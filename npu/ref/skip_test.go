package ref_test

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// Skip ends a batch between two of its kernels and passes over what comes after; events are reached, and Skip(false) makes the stream compute again.
func TestSkip(t *testing.T) {
	d, ctx := open(t), context.Background()
	s := must(d.NewStream("compute"))
	b := must(d.Alloc(4))
	l := addOne(t, d, b)
	e := must(d.NewEvent())
	release := make(chan bool)
	ran := false
	for _, err := range []error{
		s.Do(func() error { <-release; return nil }), s.Run([]npu.Launch{l, l}), s.CopyIn(npu.Ptr{Buf: b}, f32(5)),
		s.Do(func() error { ran = true; return nil }), s.Record(e),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Skip(true)
	close(release)
	if err := e.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil || ran {
		t.Fatal(err, ran)
	}
	wantF32(t, b.Host(), 0)
	s.Skip(false)
	if err := s.Run([]npu.Launch{l}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	wantF32(t, b.Host(), 1)
}
