//go:build cgo && linux

package hccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

// machine is a group of ranks in this process, each with a device of the fake CANN.
type machine struct {
	t       testing.TB
	control []comm.Communicator
	devices []npu.Device
	ranks   []*Comm
	errs    []error
}

// onFake opens n ranks. Errors of the opening are in errs.
func onFake(t testing.TB, n int, options map[string]string) *machine {
	t.Helper()
	cleanEnvironment(t)
	m := &machine{t: t, ranks: make([]*Comm, n), errs: make([]error, n)}
	var err error
	if m.control, err = shm.NewLocal(n); err != nil {
		t.Fatal(err)
	}
	for r := range n {
		d, err := acl.Open(npu.Options{Index: r})
		if err != nil {
			t.Fatal(err)
		}
		m.devices = append(m.devices, d)
	}
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			defer cancel()
			o := comm.Opening{Control: m.control[r], Device: m.devices[r], Timeout: 30 * time.Second, LongWork: 60 * time.Second, Options: options}
			m.ranks[r], m.errs[r] = newOn(ctx, &opening{Opening: o, insist: true})
		})
	}
	wg.Wait()
	for _, c := range m.ranks {
		if c != nil {
			c.closeTime = 10 * time.Millisecond // tests close ranks one after another
		}
	}
	return m
}

func (m *machine) must() *machine {
	m.t.Helper()
	for r, err := range m.errs {
		if err != nil {
			m.t.Fatalf("rank %d: %v", r, err)
		}
	}
	return m
}

// close closes everything; nothing may hang.
func (m *machine) close() {
	m.t.Helper()
	for _, c := range m.ranks {
		if c != nil {
			c.Close()
		}
	}
	for r, c := range m.ranks {
		if c == nil {
			continue
		}
		select {
		case <-c.left:
		case <-time.After(60 * time.Second):
			m.t.Fatalf("rank %d does not end", r)
		}
	}
	for r, d := range m.devices {
		done := make(chan error, 1)
		go func() { done <- d.Close() }()
		select {
		case err := <-done:
			if err != nil {
				m.t.Errorf("rank %d: close of the device: %v", r, err)
			}
		case <-time.After(60 * time.Second):
			m.t.Fatalf("the device of rank %d does not close", r)
		}
	}
	for _, c := range m.control {
		c.Close()
	}
}

// transport is the suite's view of the fake.
func transport(t *testing.T, check string) commtest.Transport {
	devices := map[comm.Communicator]npu.Device{}
	var mu sync.Mutex
	return commtest.Transport{
		New: func(t *testing.T, n int) []comm.Communicator {
			m := onFake(t, n, map[string]string{"hccl_check": check, "hccl_buffer_mb": "16"}).must()
			g := make([]comm.Communicator, n)
			mu.Lock()
			defer mu.Unlock()
			for r, c := range m.ranks {
				g[r] = c
				devices[c] = m.devices[r]
			}
			t.Cleanup(m.close)
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
		Alone:    true, // groups would share devices
	}
}

func TestSuiteOnFakeCANN(t *testing.T) {
	for _, check := range []string{"before", "behind"} {
		t.Run(check, func(t *testing.T) {
			if testing.Short() && check == "behind" {
				t.Skip("short: the fake in Go sees this one")
			}
			acltest.Use(t).Set("DESTROY", "0") // so that groups that broke can be cleared away
			commtest.Run(t, transport(t, check))
		})
	}
}

// A reduction neither makes the host wait for the gradients, nor the backward pass for the reduction, nor the host for the optimizer: each part here can
// only end if the one that would have to wait for it in a worse transport goes on.
func TestOverlap(t *testing.T) {
	acltest.Use(t)
	m := onFake(t, 2, map[string]string{"hccl_buffer_mb": "4"}).must()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for r, c := range m.ranks {
		wg.Go(func() {
			if err := m.overlap(ctx, c, m.devices[r]); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
	m.close()
}

func (m *machine) overlap(ctx context.Context, c *Comm, d npu.Device) error {
	compute, err1 := d.NewStream("compute")
	update, err2 := d.NewStream("update")
	ready, err3 := d.NewEvent()
	out, err4 := npu.AllocHost(d, 4)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	bucket := memory(c, 1000)
	issued, landed := make(chan struct{}), make(chan struct{})
	wait := func(ch chan struct{}) func() error {
		return func() error {
			select {
			case <-ch:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	// The gradients come after the reduction was issued; then the backward pass goes on until the reduction has landed.
	if err := errors.Join(compute.Do(wait(issued)), compute.Record(ready), compute.Do(wait(landed))); err != nil {
		return err
	}
	h, err := c.AllReduceAfter(ctx, ready, bucket, comm.Sum)
	if err != nil {
		return err
	}
	if err := errors.Join(update.Wait(h.(comm.OnDevice).Event()), update.CopyOut(out.Host(), bucket.Ptr)); err != nil {
		return err
	}
	close(issued)
	if err := h.Wait(ctx); err != nil {
		return err
	}
	if err := update.Sync(ctx); err != nil {
		return err
	}
	close(landed)
	if err := compute.Sync(ctx); err != nil {
		return err
	}
	origin, begin, end, ok := h.(comm.Timed).Times()
	if since := time.Since(origin); !ok || begin <= 0 || end < begin || since < 0 || since > time.Hour {
		return fmt.Errorf("the device ran it from %v to %v, and was opened %v ago", begin, end, since)
	}
	return errors.Join(compute.Close(), update.Close(), ready.Close(), out.Free(), bucket.Ptr.Buf.Free())
}

// The other version of CANN, the other generation of devices, and sums in no fixed order.
func TestOtherModes(t *testing.T) {
	if os.Getenv(envMode) == "" {
		for _, env := range [][]string{{"9.0"}, {"8.1", "FAKE_CANN_SOC=A3"}, {"8.1", envLoose + "=1"}} {
			acltest.Again(t, env[0], "TestOtherModes", append(env[1:], envMode+"=1")...)
		}
		return
	}
	acltest.Use(t)
	loose := os.Getenv(envLoose) != ""
	options := map[string]string{"hccl_buffer_mb": "4"}
	if loose {
		options["deterministic"] = "false"
	}
	m := onFake(t, 3, options).must()
	errs := make([]error, len(m.ranks))
	var wg sync.WaitGroup
	for r, c := range m.ranks {
		wg.Go(func() {
			tr := commtest.Transport{Device: func(comm.Communicator) npu.Device { return m.devices[r] }, Supports: Supports, Loose: loose}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			errs[r] = tr.Worker(ctx, c)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	m.close()
}

const (
	envMode  = "GOTRAIN_TEST_HCCL_MODE"
	envLoose = "GOTRAIN_TEST_HCCL_LOOSE"
)
