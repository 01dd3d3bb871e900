package roofline

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// limits of a processor with a cache of 1 MiB, 100 GB/s from it and 10 GB/s from memory; adding is faster than reading.
func limits() npu.Limits {
	return npu.Limits{Threads: 2, Region: time.Microsecond,
		Peaks: []npu.Peak{{Type: "f32", FLOP: 100e9}, {Type: "bf16", FLOP: 200e9}},
		Rates: []npu.Rates{{Bytes: 1 << 16, Read: 200e9, Copy: 90e9, Add: 150e9}, {Bytes: 1 << 20, Read: 100e9, Copy: 80e9, Add: 120e9},
			{Bytes: 1 << 22, Read: 10e9, Copy: 12e9, Add: 16e9}, {Bytes: 1 << 28, Read: 10e9, Copy: 12e9, Add: 16e9}}}
}

func relu(elems int) npu.Op {
	d := npu.D(npu.F32, elems)
	return npu.Op{Kind: npu.Relu, In: []npu.Desc{d}, Out: []npu.Desc{d}}
}

func near0(a, b time.Duration) bool { return a-b < time.Microsecond && b-a < time.Microsecond }

// A kernel in a cache is bound by the cache, a large one by memory; what reads only is compared with reading.
func TestBounds(t *testing.T) {
	l := limits()
	add := npu.Op{Kind: npu.Reduce, Attrs: npu.Attrs{"fn": "sum", "axes": []int{0}}, In: []npu.Desc{npu.D(npu.F32, 4<<20)}, Out: []npu.Desc{npu.D(npu.F32)}}
	for _, c := range []struct {
		op    npu.Op
		bytes int64
		rate  float64
	}{
		{relu(1 << 17), 1 << 20, 120e9}, {relu(1 << 24), 1 << 27, 16e9}, {add, 16<<20 + 4, 10e9}, {relu(16), 128, 200e9},
	} {
		r := New([]Sample{{Op: c.op, Impl: "c:x", Took: time.Hour}}, l)
		want := time.Duration(float64(c.bytes) / c.rate * 1e9)
		if k := r.Kernels[0]; !near0(k.Bound, want) || k.By != Memory || k.Bytes() != c.bytes {
			t.Errorf("%s of %d bytes: bound %v by %s, want %v", c.op.Kind, k.Bytes(), k.Bound, k.By, want)
		}
	}
}

// A time within what a cache can explain is reported with that reason; a shorter one is not believed.
func TestExceeded(t *testing.T) {
	l, op := limits(), relu(1<<19) // 4 MiB, of which 1 MiB may be in the cache
	bound := float64(4<<20) / 16e9
	least := float64(1<<20)/120e9 + float64(3<<20)/16e9
	for _, c := range []struct {
		took     float64
		exceeded bool
		reason   string
	}{{2 * bound, false, ""}, {0.9 * bound, false, "in a cache"}, {1.01 * least, false, "in a cache"}, {0.9 * least, true, "in a cache"}} {
		r := New([]Sample{{Op: op, Impl: "c:relu", Took: duration(c.took)}}, l)
		if len(r.Exceeded) > 0 != c.exceeded || !strings.Contains(r.Kinds[0].Reason, c.reason) {
			t.Errorf("%v of %v (at least %v): exceeded %q, reason %q", duration(c.took), r.Bound, r.Kernels[0].Least, r.Exceeded, r.Kinds[0].Reason)
		}
	}
}

// Winograd's convolutions may be four times as fast as their operations allow, with small tiles 2.25 times; large tiles of bf16 multiply float32.
func TestWinograd(t *testing.T) {
	x, w := npu.D(npu.F32, 8, 64, 56, 56), npu.D(npu.F32, 64, 64, 3, 3)
	op := npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"stride": []int{1, 1}, "pad": []int{1, 1, 1, 1}}, In: []npu.Desc{x, w}, Out: []npu.Desc{x}}
	direct := New([]Sample{{Op: op, Impl: "dnnl:jit", Took: time.Millisecond}}, limits())
	fewer := New([]Sample{{Op: op, Impl: "c:winograd", Took: 15 * time.Millisecond}}, limits())
	if len(direct.Exceeded) != 1 || len(fewer.Exceeded) != 0 || !near0(fewer.Kernels[0].Bound*4, direct.Kernels[0].Bound) {
		t.Errorf("%+v\n%+v", direct, fewer)
	}
	for i := range op.In {
		op.In[i].DType = npu.BF16
	}
	bound := func(name string) float64 {
		return New([]Sample{{Op: op.WithAlgorithm(name), Impl: "c:wino_conv", Took: time.Second}}, limits()).Kernels[0].Bound.Seconds()
	}
	plain := New([]Sample{{Op: op, Impl: "dnnl:jit", Took: time.Second}}, limits()).Kernels[0].Bound.Seconds()
	for name, want := range map[string]float64{npu.Winograd2: 2.25, npu.Winograd4: 2, npu.Winograd4BF16: 4} { // float32 at half the rate
		if got := plain / bound(name); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %g times as fast, want %g", name, got, want)
		}
	}
}

// Equal kernels are one row, kinds sum up, the longest come first, and shares sum up to 1.
func TestGroups(t *testing.T) {
	a, b := relu(100), relu(200)
	own := npu.Op{Kind: "own", Out: []npu.Desc{npu.D(npu.F32, 4)}}
	r := New([]Sample{{a, "c:relu", 1000}, {b, "c:relu", 3000}, {a, "c:relu", 2000}, {own, "go:own", 9000}}, limits())
	if len(r.Kernels) != 3 || r.Kernels[0].Kind != "own" || len(r.Kinds) != 2 || r.Kinds[1].Count != 3 || r.Kinds[1].Took != 6000 || r.Took != 15000 {
		t.Errorf("%+v", r)
	}
	if s := r.Kinds[0].Share + r.Kinds[1].Share; s < 0.999 || s > 1.001 {
		t.Errorf("shares sum up to %g", s)
	}
	if !strings.Contains(r.Kinds[0].Reason, "plain loops") || !strings.Contains(r.Kinds[1].Reason, "starting 2 threads") {
		t.Errorf("%q, %q", r.Kinds[0].Reason, r.Kinds[1].Reason)
	}
}

// Without limits there are times, and no bounds.
func TestWithoutLimits(t *testing.T) {
	r := New([]Sample{{relu(100), "x", 1000}}, npu.Limits{})
	if r.Bound != 0 || len(r.Exceeded) != 0 || r.Kinds[0].Ratio() != 0 || r.Took != 1000 {
		t.Errorf("%+v", r)
	}
}
