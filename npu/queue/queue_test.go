package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// job is a task of the tests: fn, or an event to reach.
type job struct {
	fn func() error
	ev *Event
	n  uint64
}

func start(length int) *Worker[job] {
	w := New("test", "s", length, func(j job) bool { return j.ev != nil })
	go func() {
		defer w.Ended()
		w.Run(func(j job, failed error, _ bool) error {
			if j.ev != nil {
				j.ev.Reach(j.n, failed)
				return nil
			}
			return j.fn()
		})
	}()
	return w
}

var ctx = context.Background()

func TestErrorIsPendingUntilSync(t *testing.T) {
	w := start(8)
	defer w.Close()
	hold, boom, ran := make(chan struct{}), errors.New("boom"), false
	w.Post(job{fn: func() error { <-hold; return boom }})
	w.Post(job{fn: func() error { ran = true; return nil }})
	var ev Event
	ev.Init("test", time.Now())
	if !ev.Done() {
		t.Error("an event counts as reached until it is recorded")
	}
	n := ev.Next()
	w.Post(job{ev: &ev, n: n})
	if ev.Done() {
		t.Error("a recorded event counts as reached")
	}
	close(hold)
	if err := ev.Sync(ctx); !errors.Is(err, boom) {
		t.Errorf("the event carries %v", err)
	}
	if err := w.Sync(ctx); !errors.Is(err, boom) || err.Error() != "test: stream s: boom" {
		t.Errorf("sync: %v", err)
	}
	if ran {
		t.Error("a task ran after the error")
	}
	if err := w.Sync(ctx); err != nil {
		t.Errorf("the error is reported twice: %v", err)
	}
	w.Post(job{fn: func() error { panic("aargh") }})
	if err := w.Sync(ctx); err == nil || err.Error() != "test: stream s: panic: aargh" {
		t.Errorf("a panic becomes %v", err)
	}
}

func TestSyncAndAwaitEndWithTheirContext(t *testing.T) {
	w := start(8)
	hold := make(chan struct{})
	w.Post(job{fn: func() error { <-hold; return nil }})
	gone, cancel := context.WithCancelCause(ctx)
	var ev Event
	ev.Init("test", time.Now())
	n := ev.Next()
	var wg sync.WaitGroup
	for _, wait := range []func(context.Context) error{w.Sync, func(c context.Context) error { return ev.Await(c, n) }} {
		wg.Go(func() {
			if err := wait(gone); err == nil || !strings.HasSuffix(err.Error(), "enough") {
				t.Errorf("got %v", err)
			}
		})
	}
	cancel(errors.New("enough"))
	wg.Wait()
	close(hold)
	if err := errors.Join(w.Sync(ctx), w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.Post(job{}); err == nil || err.Error() != "test: stream s is closed" {
		t.Errorf("post after close: %v", err)
	}
}

func TestCloseDrainsWhileOthersPost(t *testing.T) {
	w := start(2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ran, posted := 0, 0
	for range 8 {
		wg.Go(func() {
			for range 50 {
				err := w.Post(job{fn: func() error { mu.Lock(); ran++; mu.Unlock(); return nil }})
				if err != nil {
					return
				}
				mu.Lock()
				posted++
				mu.Unlock()
			}
		})
	}
	w.Close()
	wg.Wait()
	if ran != posted {
		t.Errorf("%d of %d tasks ran", ran, posted)
	}
}

func TestPostAllocatesNothing(t *testing.T) {
	w := start(8)
	defer w.Close()
	fn := func() error { return nil }
	if n := testing.AllocsPerRun(100, func() { w.Post(job{fn: fn}); w.Sync(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestProfile(t *testing.T) {
	w := start(8)
	defer w.Close()
	w.Profile(true)
	w.Sample(npu.Sample{Dur: 1})
	if got := w.Profile(false); len(got) != 1 || len(w.Profile(false)) != 0 {
		t.Errorf("samples %v", got)
	}
}

func Example() {
	w := New("mine", "compute", 16, func(func() error) bool { return false })
	go func() {
		w.Run(func(task func() error, _ error, _ bool) error { return task() })
		w.Ended()
	}()
	w.Post(func() error { return errors.New("out of coffee") })
	w.Post(func() error { fmt.Println("never runs"); return nil })
	fmt.Println(w.Sync(context.Background()))
	fmt.Println(w.Sync(context.Background()))
	w.Close()
	// Output:
	// mine: stream compute: out of coffee
	// <nil>
}
