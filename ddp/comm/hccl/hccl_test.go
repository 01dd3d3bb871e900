package hccl

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
)

// world is a group in this process, with what it stands on.
type world struct {
	t       testing.TB
	hub     *fakeHub
	control []comm.Communicator
	devices []*fakeDevice
	ranks   []*Comm
	errs    []error
}

// newWorld prepares n ranks.
func newWorld(t testing.TB, n int) *world {
	t.Helper()
	cleanEnvironment(t)
	w := &world{t: t, hub: newFakeHub(), ranks: make([]*Comm, n), errs: make([]error, n)}
	var err error
	if w.control, err = shm.NewLocal(n); err != nil {
		t.Fatal(err)
	}
	for r := range n {
		w.devices = append(w.devices, newFakeDevice(w.hub, r))
	}
	return w
}

// cleanEnvironment restores what opening a group sets.
func cleanEnvironment(t testing.TB) {
	t.Helper()
	for _, name := range []string{"HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_ALGO", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"} {
		if old, ok := os.LookupEnv(name); ok {
			t.Cleanup(func() { os.Setenv(name, old) })
		} else {
			t.Cleanup(func() { os.Unsetenv(name) })
		}
	}
}

// open opens all ranks.
func (w *world) open(options map[string]string) *world {
	var wg sync.WaitGroup
	for r := range w.ranks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			o := comm.Opening{Control: w.control[r], Device: w.devices[r], Timeout: 20 * time.Second, LongWork: 40 * time.Second, Options: options}
			w.ranks[r], w.errs[r] = open(ctx, o, w.devices[r])
		})
	}
	wg.Wait()
	return w
}

// must fails the test unless all ranks are open.
func (w *world) must() *world {
	w.t.Helper()
	for r, err := range w.errs {
		if err != nil {
			w.t.Fatalf("rank %d: %v", r, err)
		}
	}
	for _, c := range w.ranks {
		c.closeTime = 10 * time.Millisecond // tests close ranks one after another
	}
	return w
}

// close closes everything and checks that all is given back, but for HCCL's communicators where the group broke.
func (w *world) close(orderly bool) {
	w.t.Helper()
	for _, c := range w.ranks {
		if c != nil {
			c.Close()
		}
	}
	for r, c := range w.ranks {
		if c == nil {
			continue
		}
		select {
		case <-c.left:
		case <-time.After(60 * time.Second):
			w.t.Fatalf("rank %d does not end", r)
		}
	}
	for _, c := range w.control {
		c.Close()
	}
	for r, d := range w.devices {
		d.mu.Lock()
		if d.streams != 0 || d.events.Load() != 0 {
			w.t.Errorf("rank %d leaves %d streams, %d events", r, d.streams, d.events.Load())
		}
		d.mu.Unlock()
	}
	if orderly && w.hub.groups != 0 || w.hub.groups > w.hub.held { // a device under a communicator that stays must not be reset
		w.t.Errorf("%d communicators are left, %d devices hold one", w.hub.groups, w.hub.held)
	}
}

func (w *world) each(f func(ctx context.Context, c *Comm) error) []error {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	errs := make([]error, len(w.ranks))
	var wg sync.WaitGroup
	for r, c := range w.ranks {
		wg.Go(func() { errs[r] = f(ctx, c) })
	}
	wg.Wait()
	return errs
}

// memory gives n f32 on the device of a rank.
func memory(c *Comm, n int64) comm.Mem {
	b, err := c.Alloc(4 * n)
	if err != nil {
		panic(err)
	}
	return comm.Mem{Ptr: npu.Ptr{Buf: b}, Elems: n, DType: npu.F32}
}

func TestSuite(t *testing.T) {
	cleanEnvironment(t) // of the groups that are open at once, any may be the last to restore it
	for _, check := range []string{"before", "behind"} {
		t.Run(check, func(t *testing.T) {
			if testing.Short() && check == "before" {
				t.Skip("short: the fake CANN sees this one")
			}
			devices := map[comm.Communicator]npu.Device{}
			var mu sync.Mutex
			tr := commtest.Transport{
				New: func(t *testing.T, n int) []comm.Communicator {
					w := newWorld(t, n).open(map[string]string{"hccl_check": check}).must()
					g := make([]comm.Communicator, n)
					mu.Lock()
					defer mu.Unlock()
					for r, c := range w.ranks {
						g[r] = c
						devices[c] = w.devices[r]
					}
					t.Cleanup(func() { w.close(false) })
					return g
				},
				Ranks: []int{1, 2, 4},
				Device: func(c comm.Communicator) npu.Device {
					mu.Lock()
					defer mu.Unlock()
					return devices[c]
				},
				Supports: Supports,
				Fatal:    check == "behind",
			}
			commtest.Run(t, tr)
		})
	}
}

func peer(err error) (*comm.PeerError, bool) {
	var p *comm.PeerError
	return p, errors.As(err, &p)
}

// A rank whose error ends the opening is named on the others, which do not wait.
func TestOpeningFails(t *testing.T) {
	for _, c := range []struct{ inject, want string }{
		{"load 1", "loading HCCL: no such library"},
		{"stream 0", "loading HCCL"},
		{"RootInfo", "connecting"},
		{"Init 0", "connecting"},
		{"Init 2", "connecting"},
		{"AllReduce 1", "the first reduction"},
	} {
		t.Run(c.inject, func(t *testing.T) {
			w := newWorld(t, 3)
			w.hub.inject[c.inject] = errors.New("no such library (EI0006)")
			w.open(nil)
			guilty := slices.IndexFunc([]string{"0", "1", "2"}, func(r string) bool { return strings.HasSuffix(c.inject, r) })
			guilty = max(guilty, 0)
			for r, err := range w.errs {
				if err == nil || !strings.Contains(err.Error(), c.want) && r == guilty {
					t.Errorf("rank %d: %v, want %q", r, err, c.want)
				}
				if p, ok := peer(err); r != guilty && (!ok || p.Rank != guilty || !strings.Contains(p.Reason, "EI0006")) {
					t.Errorf("rank %d: %v, want a PeerError of rank %d", r, err, guilty)
				}
			}
			w.close(false)
		})
	}
}

func TestPlaces(t *testing.T) {
	w := newWorld(t, 3)
	w.devices[2].physical = "0"
	w.open(nil)
	for r, err := range w.errs {
		if err == nil || !strings.Contains(err.Error(), "ranks 0 (pid") || !strings.Contains(err.Error(), "and 2 (pid") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	w.close(true)
	if err := wrongPlaces([]place{{"a", "0", "1"}, {"a", "1", "2"}, {"b", "0", "1"}}); err != nil {
		t.Errorf("equal devices of two hosts: %v", err)
	}
	err := wrongPlaces([]place{{"a", "0", "1"}, {"b", "0", "1"}, {"b", "0", "3"}})
	if err == nil || !strings.Contains(err.Error(), "ranks 1 (pid 1) and 2 (pid 3)") {
		t.Error(err)
	}
	if err := wrongPlaces([]place{{"a", "", "1"}, {"a", "", "2"}}); err != nil {
		t.Error(err)
	}
}

func TestSettingsOfTheOpening(t *testing.T) {
	t.Setenv("HCCL_TOPOLOGY", "tree")
	t.Setenv("HCCL_TIMEOUT", "60")
	w := newWorld(t, 2).open(nil).must()
	if got := os.Getenv("HCCL_ALGO"); got != "level0:NA;level1:H-D_R" {
		t.Errorf("HCCL_ALGO = %q", got)
	}
	if got := os.Getenv("HCCL_CONNECT_TIMEOUT"); got != "120" {
		t.Errorf("HCCL_CONNECT_TIMEOUT = %q", got)
	}
	if len(w.hub.configs) != 2 || string(w.hub.configs[0]) != string(w.hub.configs[1]) || w.ranks[0].timeout != time.Minute {
		t.Errorf("%d configurations, timeout %v", len(w.hub.configs), w.ranks[0].timeout)
	}
	w.close(true)

	t.Setenv("HCCL_TOPOLOGY", "star")
	w = newWorld(t, 2).open(nil)
	for r, err := range w.errs {
		if err == nil || !strings.Contains(err.Error(), "HCCL_TOPOLOGY=star") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	w.close(true)
}

// Options that differ between ranks are named before HCCL sees them.
func TestSettingsDiffer(t *testing.T) {
	w := newWorld(t, 2)
	var wg sync.WaitGroup
	for r := range w.ranks {
		wg.Go(func() {
			o := comm.Opening{Control: w.control[r], Device: w.devices[r], Timeout: 20 * time.Second,
				Options: map[string]string{"hccl_buffer_mb": []string{"64", "32"}[r]}}
			w.ranks[r], w.errs[r] = open(context.Background(), o, w.devices[r])
		})
	}
	wg.Wait()
	for r, err := range w.errs {
		var e *comm.ConsensusError
		if !errors.As(err, &e) || e.Mine != "buffer = 64 MB" {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	w.close(true)
}

// A rank that does not come is named, before HCCL would notice.
func TestLateOnTheDevice(t *testing.T) {
	w := newWorld(t, 3).open(nil).must()
	errs := w.each(func(_ context.Context, c *Comm) error {
		if c.Rank() == 1 {
			time.Sleep(time.Second)
			return nil
		}
		ctx, cancel := comm.Patient(context.Background(), 300*time.Millisecond, time.Minute)
		defer cancel()
		return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 100), comm.Sum))
	})
	late := 0
	for _, r := range []int{0, 2} {
		var e *comm.TimeoutError
		if errors.As(errs[r], &e) {
			late++
			if !slices.Equal(e.Missing, []int{1}) || !strings.Contains(e.Call, "allreduce") {
				t.Errorf("rank %d: %v", r, e)
			}
		} else if _, ok := peer(errs[r]); !ok {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
	if late == 0 {
		t.Error("no timeout")
	}
	if _, err := w.ranks[1].Barrier(context.Background()); err == nil {
		if err := comm.Wait(context.Background())(w.ranks[1].Barrier(context.Background())); err == nil {
			t.Error("rank 1 can go on")
		}
	}
	w.close(false)
}

// The device of one rank is late, not its host: the rank is named all the same.
func TestDeviceIsLate(t *testing.T) {
	w := newWorld(t, 2).open(nil).must()
	release := make(chan struct{})
	errs := w.each(func(ctx context.Context, c *Comm) error {
		if c.Rank() == 1 {
			s, err := w.devices[1].NewStream("compute")
			if err != nil {
				return err
			}
			defer s.Close()
			ev, _ := w.devices[1].NewEvent()
			defer ev.Close()
			s.Do(func() error { <-release; return nil })
			s.Record(ev)
			h, err := c.AllReduceAfter(ctx, ev, memory(c, 9), comm.Sum)
			if err != nil {
				return err
			}
			defer close(release)
			return h.Wait(ctx)
		}
		ctx, cancel := comm.Patient(ctx, 300*time.Millisecond, time.Minute)
		defer cancel()
		return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 9), comm.Sum))
	})
	var e *comm.TimeoutError
	if !errors.As(errs[0], &e) || !slices.Equal(e.Missing, []int{1}) {
		t.Errorf("rank 0: %v", errs[0])
	}
	if p, ok := peer(errs[1]); !ok || p.Rank != 0 {
		t.Errorf("rank 1: %v", errs[1])
	}
	w.close(false)
}

// A collective that all ranks began and that hangs ends at the deadline, with words of its own.
func TestStall(t *testing.T) {
	w := newWorld(t, 2)
	w.hub.hang = "collective 2" // after that of the opening
	w.open(nil).must()
	errs := w.each(func(_ context.Context, c *Comm) error {
		ctx, cancel := comm.Patient(context.Background(), 300*time.Millisecond, time.Minute)
		defer cancel()
		return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 100), comm.Sum))
	})
	stalls := 0
	for r, err := range errs {
		var s *StallError
		if errors.As(err, &s) {
			stalls++
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all ranks have begun it") {
				t.Errorf("rank %d: %v", r, err)
			}
		} else if _, ok := peer(err); !ok {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if stalls == 0 {
		t.Error("no rank says that it stalled")
	}
	w.close(false)
}

// A device that does not let go of a collective: the error says that its memory is still in use. On the other ranks, whose devices do, it does not.
func TestMemoryOfAStallIsInUse(t *testing.T) {
	w := newWorld(t, 2)
	w.hub.hang = "collective 2"
	w.open(nil).must()
	w.hub.mu.Lock()
	w.hub.inject["abort 1"] = errors.New("the stream is still busy")
	w.hub.mu.Unlock()
	errs := w.each(func(_ context.Context, c *Comm) error {
		ctx, cancel := comm.Patient(context.Background(), 300*time.Millisecond, time.Minute)
		defer cancel()
		h, err := c.AllReduce(ctx, memory(c, 100), comm.Sum)
		if err != nil {
			return err
		}
		<-h.Done()
		return h.Wait(context.Background())
	})
	for r, err := range errs {
		if err == nil || errors.Is(err, comm.ErrInUse) != (r == 1) {
			t.Errorf("rank %d: in use %v: %v", r, errors.Is(err, comm.ErrInUse), err)
		}
	}
	w.close(false)
}

// An error of HCCL on one rank ends all: with its own words there, and named on the others.
func TestCallFails(t *testing.T) {
	for _, name := range []string{"AllReduce", "Broadcast", "AllGather", "ReduceScatter", "Reduce", "AllToAll"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3).open(nil).must()
			w.hub.mu.Lock()
			w.hub.inject[name+" 1"] = errors.New("HcclX: error 4 (internal): EI0002 notify wait")
			w.hub.mu.Unlock()
			errs := w.each(func(ctx context.Context, c *Comm) error {
				m, o := memory(c, 30), memory(c, 30)
				call := map[string]func() (comm.Handle, error){
					"AllReduce":     func() (comm.Handle, error) { return c.AllReduce(ctx, m, comm.Sum) },
					"Broadcast":     func() (comm.Handle, error) { return c.Broadcast(ctx, m, 0) },
					"AllGather":     func() (comm.Handle, error) { return c.AllGather(ctx, o, m.Slice(0, 10)) },
					"ReduceScatter": func() (comm.Handle, error) { return c.ReduceScatter(ctx, o.Slice(0, 10), m, comm.Max) },
					"Reduce":        func() (comm.Handle, error) { return c.Reduce(ctx, m, comm.Sum, 2) },
					"AllToAll":      func() (comm.Handle, error) { return c.AllToAll(ctx, o, m) },
				}[name]
				return comm.Wait(ctx)(call())
			})
			for r, err := range errs {
				p, ok := peer(err)
				switch {
				case r == 1 && (ok || err == nil || !strings.Contains(err.Error(), "rank 1: "+strings.ToLower(name)) || !strings.Contains(err.Error(), "EI0002")):
					t.Errorf("rank 1: %v", err)
				case r != 1 && (!ok || p.Rank != 1):
					t.Errorf("rank %d: %v", r, err)
				}
			}
			w.close(false)
		})
	}
}

// Behind HCCL's back a mismatch is found on every rank, and ends the group, because HCCL hangs in it.
func TestMismatchBehind(t *testing.T) {
	w := newWorld(t, 3).open(nil).must()
	errs := w.each(func(ctx context.Context, c *Comm) error {
		return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 10+int64(c.Rank()/2)), comm.Sum))
	})
	found := 0
	for r, err := range errs {
		var e *comm.MismatchError
		if errors.As(err, &e) && e.Mine != e.Its && (r == 2) == (e.Peer != 2) {
			found++
		} else if _, ok := peer(err); !ok {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if found == 0 {
		t.Error("no rank names the mismatch")
	}
	w.close(false)
}

// Host memory and what HCCL cannot reduce have their own ways.
func TestRoutes(t *testing.T) {
	w := newWorld(t, 2).open(map[string]string{"hccl_check": "before"}).must()
	for r, err := range w.each(func(ctx context.Context, c *Comm) error {
		v := []float64{1, float64(c.Rank())}
		if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Sum)); err != nil {
			return err
		}
		if v[0] != 2 || v[1] != 1 {
			return errors.New("wrong sum in host memory")
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	m := memory(w.ranks[0], 4)
	m.DType = npu.U8
	_, err := w.ranks[0].AllReduce(context.Background(), m, comm.Sum)
	if err == nil || !strings.Contains(err.Error(), "HCCL does not reduce u8\nhint:") {
		t.Error(err)
	}
	// One rank in device memory, the other in host memory.
	for r, err := range w.each(func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 4), comm.Sum))
		}
		return comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(make([]float32, 4)), comm.Sum))
	}) {
		var e *comm.MismatchError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "in host memory") || !strings.Contains(err.Error(), "in device memory") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	w.close(true)
}

// Close tells what could not be given back.
func TestDestroyFails(t *testing.T) {
	w := newWorld(t, 2).open(nil).must()
	w.hub.inject["Destroy 1"] = errors.New("HcclCommDestroy: error 4 (internal)")
	errs := w.each(func(_ context.Context, c *Comm) error {
		c.closeTime = 20 * time.Second
		return c.Close()
	})
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "rank 1: close: HcclCommDestroy: error 4") {
		t.Error(errs)
	}
	w.close(false)
}

// A rank that closes long before the others keeps its device from being reset under HCCL's communicator, until all have closed.
func TestCloseLongBeforeOthers(t *testing.T) {
	w := newWorld(t, 2).open(nil).must()
	held := func() int {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return w.hub.held
	}
	if err := w.ranks[0].Close(); err != nil { // returns before the other comes
		t.Fatal(err)
	}
	if held() != 1 {
		t.Errorf("%d devices are held while the communicator is there", held())
	}
	w.close(true)
	if held() != 0 {
		t.Errorf("%d devices are held after all have closed", held())
	}
}

// A rank that does not answer after a collective has stalled is named: its process is frozen, most likely. Here it waits with a longer deadline.
func TestStallNamesWhoDoesNotAnswer(t *testing.T) {
	w := newWorld(t, 3)
	w.hub.hang = "collective 2"
	w.open(nil).must()
	errs := w.each(func(ctx context.Context, c *Comm) error {
		if c.Rank() != 1 {
			var cancel context.CancelFunc
			ctx, cancel = comm.Patient(context.Background(), 300*time.Millisecond, time.Minute)
			defer cancel()
		}
		return comm.Wait(ctx)(c.AllReduce(ctx, memory(c, 100), comm.Sum))
	})
	named := 0
	for r, err := range errs {
		var e *comm.TimeoutError
		if errors.As(err, &e) && slices.Equal(e.Missing, []int{1}) && strings.HasPrefix(e.Call, "allreduce #2") {
			named++
		} else if _, ok := peer(err); !ok {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if named == 0 {
		t.Error("nobody names rank 1")
	}
	w.close(false)
}
