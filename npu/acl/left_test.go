//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// A call of CANN that does not end, such as the making of a group whose other ranks are gone, holds the thread of the device. When its caller gives up,
// all who wait for the device get an error, and Close does not wait.
func TestCallThatDoesNotEnd(t *testing.T) {
	acltest.Use(t)
	d, err := Open(npu.Options{})
	must(t, err)
	d.thread.leftTime = 10 * time.Millisecond
	s, err := d.NewStream("s")
	must(t, err)
	began, over := make(chan struct{}), make(chan struct{})
	ctx, giveUp := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		called <- Call(ctx, d, func(Raw) error {
			close(began)
			<-over
			return nil
		})
	}()
	<-began
	e, err := d.NewEvent()
	must(t, err, s.Record(e))
	waiters := make(chan error, 3)
	go func() { waiters <- e.Sync(t.Context()) }()
	go func() { waiters <- s.Sync(t.Context()) }()
	go func() { _, err := d.Alloc(10); waiters <- err }()
	time.Sleep(10 * time.Millisecond) // most likely they wait
	giveUp()
	if err := <-called; !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	for range cap(waiters) {
		if err := <-waiters; !errors.Is(err, errStuck) {
			t.Errorf("who waits gets %v", err)
		}
	}
	if err := s.Sync(t.Context()); !errors.Is(err, errStuck) {
		t.Errorf("who comes later gets %v", err)
	}
	close(over) // it ends after all: the device works again
	for err = errStuck; errors.Is(err, errStuck); err = s.Sync(t.Context()) {
		time.Sleep(time.Millisecond)
	}
	must(t, err, s.Close(), d.Close())
}

// Where a stream was aborted, another may still use memory: it is not given back before that one is idle.
func TestMemoryAfterAnAbort(t *testing.T) {
	fake := acltest.Use(t)
	fake.Set("DELAY", "memcpy:100")
	d, err := Open(npu.Options{})
	must(t, err)
	s, err := d.NewStream("busy")
	must(t, err)
	broken, err := d.NewStream("broken")
	must(t, err)
	host, err := d.AllocHost(512)
	must(t, err)
	mem, err := d.Alloc(512)
	must(t, err, s.CopyIn(npu.Ptr{Buf: mem}, host.Host()))
	must(t, Enqueue(s, func(Raw, cann.Stream) error { return nil }))
	must(t, d.thread.do(t.Context(), func() error { return nil }))
	if err := Abort(d, broken, errors.New("a collective hangs")); err != nil {
		t.Error(err)
	}
	must(t, host.Free(), mem.Free(), d.Close()) // the fake tells if the copy is not over
}

// A Sync that an abort ends early tells nothing of what its stream still does.
func TestMemoryAfterAnAbortedSync(t *testing.T) {
	fake := acltest.Use(t)
	fake.Set("DELAY", "memcpy:100")
	d, err := Open(npu.Options{})
	must(t, err)
	s, err := d.NewStream("busy")
	must(t, err)
	broken, err := d.NewStream("broken")
	must(t, err)
	host, err := d.AllocHost(512)
	must(t, err)
	mem, err := d.Alloc(512)
	must(t, err, s.CopyIn(npu.Ptr{Buf: mem}, host.Host()))
	synced := make(chan error, 1)
	go func() { synced <- s.Sync(t.Context()) }()
	for waits := false; !waits; { // a thread that is asked only now and then looks for the end of the copy later
		must(t, d.thread.do(t.Context(), func() error { waits = len(d.thread.waits) > 0; return nil }))
	}
	cause := errors.New("a collective hangs")
	must(t, Abort(d, broken, cause))
	if err := <-synced; !errors.Is(err, cause) {
		t.Errorf("the sync ends with %v", err)
	}
	must(t, host.Free(), mem.Free(), d.Close()) // the fake tells if the copy is not over
}
