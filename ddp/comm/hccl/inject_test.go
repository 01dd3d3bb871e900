//go:build cgo && linux

package hccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

// everyCall does each collective of device memory once, and stops at the first error.
func everyCall(ctx context.Context, c *Comm) error {
	m, o := memory(c, 64), memory(c, 64)
	defer m.Ptr.Buf.Free()
	defer o.Ptr.Buf.Free()
	half := m.Elems / int64(c.Size())
	ev, err := c.port.NewEvent()
	if err != nil {
		return err
	}
	defer ev.Close()
	for _, call := range []func() (comm.Handle, error){
		func() (comm.Handle, error) { return c.AllReduce(ctx, m, comm.Sum) },
		func() (comm.Handle, error) { return c.AllReduceAfter(ctx, ev, m, comm.Max) },
		func() (comm.Handle, error) { return c.Broadcast(ctx, m, 1) },
		func() (comm.Handle, error) { return c.AllGather(ctx, o, m.Slice(0, half)) },
		func() (comm.Handle, error) { return c.ReduceScatter(ctx, o.Slice(0, half), m, comm.Sum) },
		func() (comm.Handle, error) { return c.Reduce(ctx, m, comm.Min, 0) },
		func() (comm.Handle, error) { return c.AllToAll(ctx, o, m) },
		func() (comm.Handle, error) { return c.Barrier(ctx) },
	} {
		if err := comm.Wait(ctx)(call()); err != nil {
			return err
		}
	}
	return nil
}

// scenario opens a group, does everything and closes it. It returns the first error of each rank.
func scenario(t *testing.T, n int) []error {
	t.Helper()
	m := onFake(t, n, map[string]string{"hccl_buffer_mb": "1"})
	errs := make([]error, n)
	copy(errs, m.errs)
	if errors.Join(errs...) == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for r, c := range m.ranks {
			c.closeTime = 20 * time.Second
			wg.Go(func() {
				if errs[r] = everyCall(ctx, c); errs[r] != nil {
					c.closeTime = 10 * time.Millisecond
				}
				if err := c.Close(); errs[r] == nil {
					errs[r] = err
				}
			})
		}
		wg.Wait()
	}
	m.close()
	return errs
}

// resultCodes are those of HcclResult.
var resultCodes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 1041}

// envAll makes a test run every case instead of a ninth.
const envAll = "GOTRAIN_TEST_HCCL_ALL"

// Each call of HCCL fails in turn with each code: the rank says which call, the code and what to do; the others name that rank; nothing hangs, and nothing
// is left but what the call itself would have given back.
func TestEachCallFails(t *testing.T) {
	functions := map[string]int{ // calls in a scenario of two ranks
		"HcclGetRootInfo": 1, "HcclCommInitRootInfoConfig": 2, "HcclAllReduce": 6, "HcclBroadcast": 2, "HcclAllGather": 2, "HcclReduceScatter": 2,
		"HcclReduce": 2, "HcclAlltoAll": 2,
	}
	for f, calls := range functions {
		for n := 1; n <= calls; n++ {
			for _, code := range resultCodes {
				if os.Getenv(envAll) == "" && (n+code)%9 != 0 { // 450 cases, two minutes of waiting
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%d", f, n, code), func(t *testing.T) {
					fake := fakeFor(t)
					if f == "HcclCommInitRootInfoConfig" { // the other rank stays in it until this timeout
						fake.Set("TIME_SCALE", "0.0005")
					}
					fake.Set("INJECT", fmt.Sprintf("%s:%d:%d", f, n, code))
					errs := scenario(t, 2)
					if fake.Stats().Injected != 1 {
						t.Fatalf("the injection was met %d times", fake.Stats().Injected)
					}
					oneCause(t, errs, fmt.Sprintf("%s: error %d", f, code))
				})
			}
		}
	}
}

// A task of HCCL fails on the device, later than its call.
func TestEachTaskFails(t *testing.T) {
	for _, c := range []struct {
		f    string
		n    int
		code int // of the runtime
	}{{"HcclAllReduce", 1, 107020}, {"HcclAllReduce", 4, 507015}, {"HcclBroadcast", 2, 507057}, {"HcclReduceScatter", 1, 507013}, {"HcclAlltoAll", 2, 507904}} {
		t.Run(fmt.Sprintf("%s/%d/%d", c.f, c.n, c.code), func(t *testing.T) {
			fake := fakeFor(t)
			fake.Set("INJECT", fmt.Sprintf("%s:%d:%d@", c.f, c.n, c.code))
			errs := scenario(t, 2)
			if fake.Stats().Injected != 1 {
				t.Fatalf("the injection was met %d times", fake.Stats().Injected)
			}
			oneCause(t, errs, fmt.Sprint("error ", c.code))
		})
	}
}

// Calls of the runtime fail, for which the transport asked.
func TestRuntimeFails(t *testing.T) {
	// The counts are of all calls in the process, those of devices included, so the fault may show when a device opens; that is another test's matter.
	for _, f := range []string{"aclrtStreamWaitEvent", "aclrtRecordEvent", "aclrtCreateEventExWithFlag", "aclrtMemcpyAsync", "aclrtMallocHost"} {
		for n := 1; n <= 9; n += 2 {
			t.Run(fmt.Sprintf("%s/%d", f, n), func(t *testing.T) {
				fake := fakeFor(t)
				m := onFake(t, 2, map[string]string{"hccl_buffer_mb": "1"}).must()
				fake.Set("INJECT", fmt.Sprintf("%s:%d:207005", f, n+int(fake.Stats().Calls[f])))
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				errs := make([]error, 2)
				var wg sync.WaitGroup
				for r, c := range m.ranks {
					wg.Go(func() { errs[r] = everyCall(ctx, c) })
				}
				wg.Wait()
				if fake.Stats().Injected > 0 && errors.Join(errs...) != nil {
					oneCause(t, errs, f+": error 207005")
				}
				m.close()
			})
		}
	}
}

// fakeFor is the fake for a test that breaks groups: HCCL's timeouts are short, and destroying a communicator does not wait.
func fakeFor(t *testing.T) *acltest.Fake {
	fake := acltest.Use(t)
	fake.Set("DESTROY", "0")
	fake.Set("TIME_SCALE", "0.02")
	return fake
}

// oneCause checks that one rank reports the cause, with its own number and a hint, and that the others name that rank.
func oneCause(t *testing.T, errs []error, want string) {
	t.Helper()
	guilty := -1
	for r, err := range errs {
		if err == nil {
			t.Errorf("rank %d has no error", r)
			continue
		}
		var p *comm.PeerError
		if errors.As(err, &p) {
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("rank %d", r)) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("rank %d: %v\nwant %q, the rank and a hint", r, err, want)
		}
		guilty = r
	}
	if guilty < 0 {
		t.Errorf("no rank reports the cause: %v", errs)
	}
	for r, err := range errs {
		var p *comm.PeerError
		if errors.As(err, &p) && (p.Rank != guilty || !strings.Contains(p.Reason, want)) {
			t.Errorf("rank %d: %v\nwant %q of rank %d", r, err, want, guilty)
		}
	}
}
