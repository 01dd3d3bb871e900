package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	_ "github.com/gotrain/gotrain/ddp/comm/staged"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// bench is a rank with a device whose memory the host cannot access.
type bench struct {
	dev    npu.Device
	data   comm.Communicator
	stream npu.Stream
	eng    *ddp.Engine
}

func (b *bench) close() error {
	return errors.Join(b.eng.Close(), b.data.Close(), b.stream.Close(), b.dev.Close())
}

// open makes a rank; change may change the engine's configuration.
func openBench(ctx context.Context, control comm.Communicator, memory string, change func(*bench, *ddp.Config)) (b *bench, err error) {
	b = &bench{}
	if b.dev, err = npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": memory}}); err != nil {
		return nil, err
	}
	if b.stream, err = b.dev.NewStream("compute"); err != nil {
		return nil, err
	}
	if b.data, err = comm.ForDevice(ctx, comm.Opening{Control: control, Device: b.dev}); err != nil {
		return nil, err
	}
	c := ddp.Config{Comm: b.data, Control: control, Device: b.dev, Params: params(70000, 90000, 300), BucketMB: 0.3, FirstBucketMB: 0.3}
	change(b, &c)
	b.eng, err = ddp.New(ctx, c)
	return b, err
}

// host returns page-locked memory with n floats of value v.
func (b *bench) host(n int64, v float32) ([]byte, error) {
	m, err := npu.AllocHost(b.dev, 4*n)
	if err != nil {
		return nil, err
	}
	f := comm.View[float32](comm.Host(m.Host(), npu.F32))
	for i := range f {
		f[i] = v
	}
	return m.Host(), nil
}

// Everything from the kernels of the buckets to the optimizer behind their reductions is enqueued while the device has not done anything yet: the host waits
// for nothing in between.
func TestStepIsEnqueuedBeforeTheDeviceRuns(t *testing.T) {
	ctx := t.Context()
	for _, n := range []int{1, 2} {
		var waiting sync.WaitGroup // ranks whose step is not enqueued
		waiting.Add(n)
		succeed(t, ranks(t, group(t, n), func(control comm.Communicator) error {
			type handed struct {
				k     int
				after npu.Event
			}
			handedOn := make(chan handed, 10)
			var spans []ddp.Span
			var mu sync.Mutex
			b, err := openBench(ctx, control, "separate", func(_ *bench, c *ddp.Config) {
				c.VoteFirst = true
				c.OnBucket = func(k int, _ comm.Mem, after npu.Event) error { handedOn <- handed{k, after}; return nil }
				c.Trace = func(s ddp.Span) { mu.Lock(); spans = append(spans, s); mu.Unlock() }
			})
			if err != nil {
				return err
			}
			start := make(chan struct{})
			if err := b.stream.Do(func() error { <-start; return nil }); err != nil { // a forward pass that has not begun
				return err
			}
			if err := b.eng.Begin(1, true); err != nil {
				return err
			}
			buckets := b.eng.Buckets()
			for k, bk := range buckets {
				g, err := b.host(bk.Mem.Elems, float32(control.Rank()+k+1))
				if err != nil {
					return err
				}
				ev, err := b.dev.NewEvent()
				if err != nil {
					return err
				}
				if err := errors.Join(b.stream.CopyIn(bk.Mem.Ptr, g), b.stream.Record(ev), b.eng.ReadyBucket(k, ev)); err != nil {
					return err
				}
			}
			select {
			case h := <-handedOn:
				return fmt.Errorf("bucket %d was reduced before the vote", h.k)
			default:
			}
			if _, err := b.eng.Vote(ctx, ddp.Vote{Count: 1}); err != nil {
				return err
			}
			outs := make([][]byte, len(buckets))
			for k, bk := range buckets {
				h := <-handedOn // comes although no kernel has run
				if h.k != k || h.after == nil {
					return fmt.Errorf("bucket %d handed on as %+v", k, h)
				}
				if outs[k], err = b.host(bk.Mem.Elems, 0); err != nil {
					return err
				}
				if err := errors.Join(b.stream.Wait(h.after), b.stream.CopyOut(outs[k], bk.Mem.Ptr)); err != nil { // "the optimizer"
					return err
				}
			}
			waiting.Done()
			waiting.Wait()
			close(start)
			if _, err := b.eng.Wait(ctx); err != nil {
				return err
			}
			if err := b.stream.Sync(ctx); err != nil {
				return err
			}
			for k, out := range outs {
				want := float32(n*(k+1) + n*(n-1)/2)
				for i, v := range comm.View[float32](comm.Host(out, npu.F32)) {
					if v != want {
						return fmt.Errorf("bucket %d element %d: the optimizer saw %g, want %g", k, i, v, want)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range spans {
				if s.What == "event" {
					return errors.New("the host waited for a bucket's event")
				}
			}
			return b.close()
		}))
	}
}

// Zero clears device memory, CheckState compares it, Broadcast makes it equal.
func TestStateInDeviceMemory(t *testing.T) {
	ctx := t.Context()
	for _, memory := range []string{"separate", "strict"} {
		errs := ranks(t, group(t, 2), func(control comm.Communicator) error {
			b, err := openBench(ctx, control, memory, func(*bench, *ddp.Config) {})
			if err != nil {
				return err
			}
			defer b.close()
			g := b.eng.Grad(1)
			write := func(v float32) error {
				src, err := b.host(g.Elems, v)
				if err != nil {
					return err
				}
				return errors.Join(b.stream.CopyIn(g.Ptr, src), b.stream.Sync(ctx))
			}
			state := ddp.Named{Name: "w", Mem: g}
			if err := write(float32(control.Rank())); err != nil {
				return err
			}
			if err := b.eng.Broadcast(ctx, state); err != nil {
				return err
			}
			if err := b.eng.CheckState(ctx, state); err != nil {
				return fmt.Errorf("after a broadcast: %w", err)
			}
			if err := write(3); err != nil {
				return err
			}
			if err := b.eng.Zero(ctx); err != nil {
				return err
			}
			out, err := b.host(g.Elems, 1)
			if err != nil {
				return err
			}
			if err := errors.Join(b.stream.CopyOut(out, g.Ptr), b.stream.Sync(ctx)); err != nil {
				return err
			}
			for _, v := range out {
				if v != 0 {
					return errors.New("Zero left something")
				}
			}
			if control.Rank() == 1 {
				if err := write(5); err != nil {
					return err
				}
			}
			err = b.eng.CheckState(ctx, state)
			if err == nil || !strings.Contains(err.Error(), "w = f32[") {
				return fmt.Errorf("states that differ: %v", err)
			}
			return nil
		})
		succeed(t, errs)
	}
}

// A transport of the host cannot reduce device memory; a control communicator of other ranks cannot vote.
func TestConfigOfCommunicators(t *testing.T) {
	g := group(t, 2)
	errs := ranks(t, g, func(control comm.Communicator) error {
		dev, err := npu.Open("ref", npu.Options{Extra: map[string]string{"memory": "separate"}})
		if err != nil {
			return err
		}
		defer dev.Close()
		_, err = ddp.New(t.Context(), ddp.Config{Comm: control, Device: dev, Params: params(10)})
		if err == nil || !strings.Contains(err.Error(), "separate memory") {
			return fmt.Errorf("host memory for a device: %v", err)
		}
		_, err = ddp.New(t.Context(), ddp.Config{Comm: control, Control: group(t, 1)[0], Params: params(10)})
		if err == nil || !strings.Contains(err.Error(), "same ranks") {
			return fmt.Errorf("other ranks: %v", err)
		}
		return nil
	})
	succeed(t, errs)
}
