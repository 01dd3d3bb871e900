//go:build cgo && linux

package acl

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/nputest"
)

// The suite of kernels, in all types, on both generations of devices that are supported and with both versions of CANN.
func TestKernels(t *testing.T) {
	for _, soc := range []string{"A2", "A3"} {
		t.Run(soc, func(t *testing.T) {
			fake := acltest.Use(t)
			fake.Set("SOC", soc)
			n := -1 // the chosen shapes; generated ones too where they may find something else
			if soc == "A2" && acltest.Version() == "8.1" && !testing.Short() {
				n = 6
			}
			d := openOn(t, "exact_dw", "true")
			nputest.Run(t, d, nputest.Options{N: n, Bound: rounded, Skip: ownBits})
			must(t, d.Close())
		})
	}
}

func TestKernelsOfCANN9(t *testing.T) {
	if acltest.Version() != "8.1" {
		t.Skip("TestKernels is this test")
	}
	acltest.Again(t, "9.0", "TestKernels")
}

// Before 9.0 CANN rounds the product of 16-bit operands to 16 bits on its way to f32, and without exact_dw gotrain accepts that.
func TestKernelsThatRound(t *testing.T) {
	acltest.Use(t)
	d := openOn(t)
	act := 0.0
	for _, c := range nputest.Cases(npu.MatMul, npu.BF16) {
		results, err := nputest.Check(t.Context(), d, []nputest.Case{c}, nputest.Options{Bound: func(op npu.Op, _ int) float64 {
			if op.Out[0].DType == npu.F32 {
				return 1 << 11
			}
			return 1
		}})
		must(t, err)
		for _, r := range results {
			if r.Status == nputest.Failed {
				t.Error(r)
			}
			act = max(act, r.Worst)
		}
	}
	must(t, d.Close())
	if acltest.Version() == "8.1" && act == 0 {
		t.Error("nothing is rounded: the fake does not imitate 8.1")
	}
}

// rounded widens the bound where the sum of two gradients is rounded to the activations' type before it is used.
func rounded(op npu.Op, out int) float64 {
	if op.Kind == npu.BatchNormBwd && op.Attrs.Bool("sum") && op.In[0].DType != npu.F32 && (out == 1 || out == 2) {
		return 1 << 10 // f32 against bf16's 2^-9 of each of the terms
	}
	return 1
}

// Dropout has bits of the device's own: they are a function of seed and id, in the right proportion, and scale what stays.
func TestDropout(t *testing.T) {
	acltest.Use(t)
	d := openOn(t)
	if !d.Has(npu.Dropout, npu.Attrs{"p": 0.25, "id": 1}) {
		if acltest.Version() != "8.1" {
			t.Error("9.0 has no dropout")
		} else {
			acltest.Again(t, "9.0", "TestDropout")
		}
		return
	}
	const n = 8192
	s := newStream(t, d, "s")
	mask := func(id int, seed uint64) []byte {
		op := npu.Op{Kind: npu.Dropout, Attrs: npu.Attrs{"p": 0.25, "id": id}, In: []npu.Desc{npu.D(npu.F32, n), npu.D(npu.I64)}, Out: []npu.Desc{npu.D(npu.F32, n)}}
		k, err := d.Compile(op)
		must(t, err)
		x, sd, y := alloc(t, d, 4*n), alloc(t, d, 8), alloc(t, d, 4*n)
		l, err := k.Bind([]npu.Ptr{x, sd, y}, alloc(t, d, k.Workspace()+1))
		must(t, err)
		got := make([]byte, 4*n)
		must(t, s.CopyIn(x, floats(n, func(int) float32 { return 3 })), s.CopyIn(sd, binary.LittleEndian.AppendUint64(nil, seed)))
		must(t, s.Run([]npu.Launch{l}), s.CopyOut(got, y), s.Sync(ctx))
		return got
	}
	a := mask(1, 42)
	if !bytes.Equal(a, mask(1, 42)) || bytes.Equal(a, mask(2, 42)) || bytes.Equal(a, mask(1, 43)) {
		t.Error("the bits are not a function of seed and id")
	}
	kept := 0
	for i := 0; i < len(a); i += 4 {
		switch v := math.Float32frombits(binary.LittleEndian.Uint32(a[i:])); v {
		case 4:
			kept++
		case 0:
		default:
			t.Fatalf("3 became %v", v)
		}
	}
	if share := float64(kept) / n; share < 0.73 || share > 0.77 { // four standard deviations
		t.Errorf("%v stays", share)
	}
}

// With rows, all elements of a row share one bit.
func TestDropoutRows(t *testing.T) {
	acltest.Use(t)
	d := openOn(t)
	if !d.Has(npu.Dropout, npu.Attrs{"p": 0.25, "rows": true}) {
		acltest.Again(t, "9.0", "TestDropoutRows")
		return
	}
	const n, row = 2000, 6
	x := npu.D(npu.F32, n, 2, 3)
	op := npu.Op{Kind: npu.Dropout, Attrs: npu.Attrs{"p": 0.25, "id": 1, "rows": true}, In: []npu.Desc{x, npu.D(npu.I64)}, Out: []npu.Desc{x}}
	k, err := d.Compile(op)
	must(t, err)
	s, in, seed := newStream(t, d, "s"), alloc(t, d, 4*n*row), alloc(t, d, 8)
	l, err := k.Bind([]npu.Ptr{in, seed, in}, alloc(t, d, k.Workspace()+1))
	must(t, err)
	got := make([]byte, 4*n*row)
	must(t, s.CopyIn(in, floats(n*row, func(int) float32 { return 3 })), s.CopyIn(seed, make([]byte, 8)))
	must(t, s.Run([]npu.Launch{l}), s.CopyOut(got, in), s.Sync(ctx))
	kept := 0
	for i := range n * row {
		v := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:]))
		if first := math.Float32frombits(binary.LittleEndian.Uint32(got[4*(i/row*row):])); v != first || v != 4 && v != 0 {
			t.Fatalf("element %d is %v, the first of its row %v", i, v, first)
		}
		if v != 0 {
			kept++
		}
	}
	if share := float64(kept) / (n * row); share < 0.70 || share > 0.80 { // five standard deviations
		t.Errorf("%v stays", share)
	}
}

// ownBits skips what cannot be compared.
func ownBits(op npu.Op) string {
	if op.Kind == npu.Dropout {
		return "its bits are the device's own: see TestDropout"
	}
	return ""
}
