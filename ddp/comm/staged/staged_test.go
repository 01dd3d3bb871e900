package staged

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// open makes n ranks, each with a device of its own. It closes devices and control communicators at the end.
func open(t *testing.T, n int, memory string) []comm.Communicator {
	t.Helper()
	control := []comm.Communicator{self.New()}
	if n > 1 {
		var err error
		if control, err = shm.NewLocal(n); err != nil {
			t.Fatal(err)
		}
	}
	group := make([]comm.Communicator, n)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for r, ctl := range control {
		dev, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": memory}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(dev.Close(), ctl.Close()); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			c, err := comm.ForDevice(ctx, comm.Opening{Control: ctl, Device: dev})
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			group[r] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return group
}

func TestSuite(t *testing.T) {
	for _, memory := range []string{"separate", "strict"} {
		t.Run(memory, func(t *testing.T) {
			if memory == "separate" && testing.Short() {
				t.Skip("short")
			}
			t.Parallel()
			commtest.Run(t, commtest.Transport{
				New:    func(t *testing.T, n int) []comm.Communicator { return open(t, n, memory) },
				Ranks:  []int{2, 3},
				Device: func(c comm.Communicator) npu.Device { return c.(*Comm).dev },
			})
		})
	}
}

// A device that never comes to the call does not hang the rank: the call's deadline, an abort by a peer and Close end the wait.
func TestDeviceHangs(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, g []comm.Communicator, cancel func()) (want func(error) bool){
		"deadline": func(_ context.Context, _ []comm.Communicator, cancel func()) func(error) bool {
			cancel()
			return func(err error) bool { return errors.Is(err, context.Canceled) }
		},
		"abort": func(_ context.Context, g []comm.Communicator, _ func()) func(error) bool {
			g[1].Abort(errors.New("the loss is not finite"))
			return func(err error) bool {
				p := (*comm.PeerError)(nil)
				return errors.As(err, &p) && p.Rank == 1
			}
		},
		"control": func(_ context.Context, g []comm.Communicator, _ func()) func(error) bool {
			g[1].(*Comm).ctl.Abort(errors.New("the loss is not finite"))
			return func(err error) bool {
				p := (*comm.PeerError)(nil)
				return errors.As(err, &p) && p.Rank == 1
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, 2, "separate")
			defer g[1].Close()
			c := g[0].(*Comm)
			s, err1 := c.dev.NewStream("compute")
			ev, err2 := c.dev.NewEvent()
			buf, err3 := c.dev.Alloc(400)
			hang := make(chan struct{})
			if err := errors.Join(err1, err2, err3, s.Do(func() error { <-hang; return nil }), s.Record(ev)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h, err := c.AllReduceAfter(ctx, ev, comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: 100, DType: npu.F32}, comm.Sum)
			if err != nil {
				t.Fatal(err)
			}
			want := end(ctx, g, cancel)
			if err := h.Wait(t.Context()); !want(err) {
				t.Errorf("error %v", err)
			}
			if _, err := c.Barrier(t.Context()); err == nil {
				t.Error("the group is not broken")
			}
			if err := comm.Check(c.ctl); err == nil {
				t.Error("the control communicator is not broken")
			}
			select {
			case <-h.Done():
				t.Error("the handle is done although the device may still use the memory")
			default:
			}
			close(hang)
			<-h.Done()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Host memory belongs to the control communicator.
func TestHostMemoryIsRefused(t *testing.T) {
	g := open(t, 2, "separate")
	for _, c := range g {
		defer c.Close()
	}
	_, err := g[0].AllReduce(t.Context(), comm.HostOf([]float32{1}), comm.Sum)
	if err == nil || !strings.Contains(err.Error(), "use the control communicator") {
		t.Error(err)
	}
}

// A device whose memory the host can access needs no staging, and one rank needs no transport.
func TestForDevice(t *testing.T) {
	control, err := shm.NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	defer control[1].Close()
	defer control[0].Close()
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	o := comm.Opening{Control: control[0], Device: dev}
	if c, err := comm.ForDevice(t.Context(), o); err != nil || c != control[0] {
		t.Error(c, err)
	}
	if _, err := Open(t.Context(), o); err == nil {
		t.Error("staging was opened for nothing")
	}
	one := open(t, 1, "separate")[0]
	if _, ok := one.(comm.Ordered); !ok || one.Size() != 1 {
		t.Errorf("%T", one)
	}
}
