package compress_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	_ "github.com/gotrain/gotrain/ddp/comm/staged"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// onDevice reduces gradients of two parameters in memory that the host cannot access, for some steps, and returns the last sums.
func onDevice(ctx context.Context, control comm.Communicator, name string, factor float64) (out []float32, err error) {
	dev, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": "strict"}})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	data, err := comm.ForDevice(ctx, comm.Opening{Control: control, Device: dev})
	if err != nil {
		return nil, err
	}
	defer data.Close()
	codec, err := compress.New(name, compress.Options{Device: dev, Factor: factor})
	if err != nil {
		return nil, err
	}
	stream, err := dev.NewStream("compute")
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	eng, err := ddp.New(ctx, ddp.Config{Comm: data, Control: control, Device: dev, Codec: codec, BucketMB: 0.02, FirstBucketMB: 0.02,
		Params: []ddp.Param{{Name: "a", Elems: 3000}, {Name: "b", Elems: 5000}}})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	ev, err := dev.NewEvent()
	if err != nil {
		return nil, err
	}
	defer ev.Close()
	copies := npu.NewCopier(dev, stream)
	defer copies.Close()
	x := make([]float32, 8000)
	for step := range int64(3) {
		if err := eng.Begin(step, true); err != nil {
			return nil, err
		}
		for i := range x {
			x[i] = float32(i+1) / float32(control.Rank()+3) * float32(step+1)
		}
		at := 0
		for i := range 2 {
			m := eng.Grad(i)
			if err := copies.In(ctx, m.Ptr, comm.Host(comm.HostOf(x[at:at+int(m.Elems)]).Host(), npu.F32).Host()); err != nil {
				return nil, err
			}
			at += int(m.Elems)
		}
		if err := stream.Record(ev); err != nil {
			return nil, err
		}
		for k := range eng.Buckets() {
			if err := eng.ReadyBucket(k, ev); err != nil {
				return nil, err
			}
		}
		if _, err := eng.Wait(ctx); err != nil {
			return nil, err
		}
	}
	for i := range 2 {
		m := eng.Grad(i)
		b := make([]float32, m.Elems)
		if err := copies.Out(ctx, comm.HostOf(b).Host(), m.Ptr); err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// TestDevice: gradients in memory of a device are cast by its kernels; the sums are equal on all ranks.
func TestDevice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		name   string
		factor float64
	}{{"f16", 0.25}, {"f16", 1}, {"bf16", 0}} {
		g, err := shm.NewLocal(2)
		if err != nil {
			t.Fatal(err)
		}
		var sums [2][]float32
		var errs [2]error
		var wg sync.WaitGroup
		for r := range g {
			wg.Go(func() { sums[r], errs[r] = onDevice(ctx, g[r], c.name, c.factor); g[r].Close() })
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		for i, got := range sums[0] {
			want := 3 * float64(i+1) * (1.0/3 + 1.0/4)
			if got != sums[1][i] || math.Abs(float64(got)/want-1) > 0.01 {
				t.Fatalf("%s: element %d is %g on rank 0, %g on rank 1, want %g", c.name, i, got, sums[1][i], want)
			}
		}
	}
	dev, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": "separate"}})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if _, err := compress.New("int8", compress.Options{Device: dev}); err == nil || !strings.Contains(fmt.Sprint(err), "hint: use f16 or bf16") {
		t.Errorf("int8 on a device: %v", err)
	}
}
