//go:build cgo && linux

package acl

import (
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/nputest"
)

// The suite of kernels, in all types, on both generations of devices that are supported and with both versions of CANN.
func TestKernels(t *testing.T) {
	for _, soc := range []string{"A2", "A3"} {
		t.Run(soc, func(t *testing.T) {
			fake := acltest.Use(t)
			fake.Set("SOC", soc)
			d := openOn(t, "exact_dw", "true")
			nputest.Run(t, d, nputest.Options{N: cases(), Unchecked: true, Bound: rounded, Skip: func(op npu.Op) string { return unknown(t, d, op) }})
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
		return 1 << 7 // f32 against bf16's 2^-9 of each of the terms
	}
	return 1
}

// unknown says which operator the fake does not compute.
func unknown(t *testing.T, d *Device, op npu.Op) string {
	op, err := d.Choose(op)
	if err != nil {
		return ""
	}
	k, err := d.Compile(op)
	if err == nil {
		must(t, k.Close())
		return ""
	}
	var e *cann.Error
	if errors.As(err, &e) && e.Code == 561003 && strings.Contains(e.Detail, "in this fake") {
		return "the fake does not compute " + e.Op
	}
	return ""
}

// cases is the number of generated cases of each kind.
func cases() int {
	if testing.Short() {
		return -1
	}
	return 6
}
