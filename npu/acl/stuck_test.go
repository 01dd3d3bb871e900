//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

// A call of CANN that does not return ends nobody's wait, but for the waits' own time, and cleaning up gives up with an error. When it returns after all,
// everything goes on.
func TestThreadHangsInCANN(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	e, err := d.NewEvent()
	must(t, err)
	mem, err := d.Alloc(64)
	must(t, err)
	hold := make(chan struct{})
	must(t, s.Do(func() error { <-hold; return nil }), s.Record(e)) // so that the event is not reached
	hang := make(chan struct{})
	began := make(chan struct{})
	gone, cancel := context.WithCancel(ctx)
	go func() { _ = d.thread.do(ctx, func() error { close(began); <-hang; return nil }) }()
	<-began
	cancel()
	if err := e.Sync(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for the event: %v", err)
	}
	d.thread.patience = time.Millisecond
	if e.Done() {
		t.Error("an event counts as reached that nobody could ask for")
	}
	for what, err := range map[string]error{"free": mem.Free(), "stream": s.Close(), "device": d.Close()} {
		if !errors.Is(err, errStuck) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	d.thread.patience = patience
	close(hang)
	close(hold)
	must(t, e.Sync(ctx), s.Sync(ctx))
	if !e.Done() {
		t.Error("the event was not reached")
	}
	must(t, s.Close(), d.Close())
}

// A Sync ends with its context although the queue has no room for it.
func TestSyncOfFullQueue(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	hold := make(chan struct{})
	nothing := func() error { return nil }
	must(t, s.Do(func() error { <-hold; return nil }))
	for range queueLen - 1 {
		must(t, s.Do(nothing))
	}
	gone, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.Sync(gone); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is full") {
		t.Errorf("got %v", err)
	}
	close(hold)
	must(t, s.Sync(ctx))
}

// A launch whose kernel was closed is refused, not run.
func TestClosedKernel(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	must(t, s.Run([]npu.Launch{l}), s.Sync(ctx), l.Kernel().Close())
	must(t, s.Run([]npu.Launch{l}))
	if err := s.Sync(ctx); err == nil || !strings.Contains(err.Error(), "the kernel was closed") {
		t.Errorf("got %v", err)
	}
	if got := read(t, s, y); got != 1 {
		t.Errorf("%v additions, want 1", got)
	}
}

// Any code of the operator library means that an executor cannot be reused: what 8.1 returns is not known.
func TestOtherRefusalOfReuse(t *testing.T) {
	fake := acltest.Use(t)
	fake.Set("INJECT", "aclSetAclOpExecutorRepeatable:*:561103")
	d := openOn(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	must(t, s.Run([]npu.Launch{l, l}))
	if got := read(t, s, y); got != 2 {
		t.Errorf("%v additions, want 2", got)
	}
}
