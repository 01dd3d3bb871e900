package fakecann

import (
	"math"
	"math/bits"
	"testing"
)

// vector is a plain tensor of one dim.
func vector(dtype string, n int, v ...number) opArg {
	return opArg{Kind: "T", DType: dtype, Dims: []int{n}, Strides: []int{1}, Storage: n, Values: v}
}

func integer(v int) opArg { return opArg{Kind: "i", Values: []number{number(v)}} }

func float(v float64) opArg { return opArg{Kind: "f", Values: []number{number(v)}} }

func scalar(v float64) opArg { return opArg{Kind: "S", DType: "f32", Values: []number{number(v)}} }

func list(v ...number) opArg { return opArg{Kind: "I", Values: v} }

// ok runs a case that must pass, and returns the bytes of its last tensor.
func (d *driver) ok(t *testing.T, c *opCase, seed int) []byte {
	t.Helper()
	a := d.call(t, c, seed)
	if a.code != 0 {
		t.Fatalf("%s: %d %s", c.Op, a.code, a.text)
	}
	return a.storage[len(a.storage)-1]
}

func TestDropoutMasks(t *testing.T) {
	d := newDriver(t)
	const n, p = 100 * 1000, 0.3
	bytes := (n + 127) / 128 * 16
	host := func(seed, offset int) []byte {
		return d.ok(t, &opCase{Op: "DropoutGenMaskV2", Args: []opArg{list(100, 1000), float(p), integer(seed), integer(offset), integer(0),
			vector("u8", bytes)}}, 1)
	}
	device := func(seed, offset, more int) []byte {
		return d.ok(t, &opCase{Op: "DropoutGenMaskV2Tensor", Args: []opArg{list(100, 1000), float(p), vector("i64", 1, number(seed)), vector("i64",
			1, number(offset)),
			integer(more), integer(0), vector("u8", bytes)}}, 2)
	}
	m := host(5, 0)
	ones := 0
	for _, b := range m {
		ones += bits.OnesCount8(b)
	}
	if share := float64(ones) / n; math.Abs(share-0.7) > 0.01 {
		t.Errorf("%v of the elements are kept, want 0.7", share)
	}
	for i := n; i < bytes*8; i++ {
		if m[i/8]>>(i%8)&1 != 0 {
			t.Fatalf("bit %d, beyond the last element, is set", i)
		}
	}
	if string(m) != string(host(5, 0)) || string(m) != string(device(5, 0, 0)) || string(host(5, 7)) != string(device(5, 4, 3)) {
		t.Error("the mask is no function of seed and offset")
	}
	if string(m) == string(host(6, 0)) || string(m) == string(host(5, 1)) {
		t.Error("another seed or offset gives the same mask")
	}
	d.refused(t, &opCase{Op: "DropoutGenMaskV2", Args: []opArg{list(100), float(p), integer(1), integer(0), integer(0), vector("u8", 13)}}, 161002, "out")
	d.refused(t, &opCase{Op: "DropoutGenMaskV2Tensor", Args: []opArg{list(100), float(p), vector("f32", 1), vector("i64", 1), integer(0), integer(0),
		vector("u8", 16)}},
		161002, "seed")
}

func TestRandomFills(t *testing.T) {
	d := newDriver(t)
	const n = 20000
	moments := func(op string, a, b float64, dtype string) (mean, deviation, low, high float64) {
		out := vector(dtype, n)
		v := out.view(d.ok(t, &opCase{Op: op, Args: []opArg{out, float(a), float(b), integer(3), integer(4)}}, 1))
		low, high = math.Inf(1), math.Inf(-1)
		for _, x := range v {
			mean += x / n
			deviation += x * x / n
			low, high = min(low, x), max(high, x)
		}
		return mean, math.Sqrt(deviation - mean*mean), low, high
	}
	for _, dtype := range []string{"f32", "bf16", "f16"} {
		if mean, _, low, high := moments("InplaceUniform", -1, 3, dtype); math.Abs(mean-1) > 0.05 || low < -1 || high > 3 || high < 2.9 {
			t.Errorf("uniform %s: mean %v, %v to %v", dtype, mean, low, high)
		}
		if mean, deviation, _, _ := moments("InplaceNormal", 1, 2, dtype); math.Abs(mean-1) > 0.05 || math.Abs(deviation-2) > 0.05 {
			t.Errorf("normal %s: mean %v, deviation %v", dtype, mean, deviation)
		}
	}
	d.refused(t, &opCase{Op: "InplaceUniform", Args: []opArg{vector("bool", 1), float(0), float(1), integer(0), integer(0)}}, 161002, "selfRef")
	d.refused(t, &opCase{Op: "InplaceNormal", Args: []opArg{vector("f32", 1), float(0), float(-1), integer(0), integer(0)}}, 161002, "std")
}
