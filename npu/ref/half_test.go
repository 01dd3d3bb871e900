package ref_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// halves are the values of all finite non-negative numbers of binary16 in rising order, by its definition: 2^e·(1 + f/1024), and f·2^-24 below 2^-14.
func halves() []float64 {
	var v []float64
	for f := range 1024 {
		v = append(v, float64(f)/(1<<24))
	}
	for e := -14; e <= 15; e++ {
		for f := range 1024 {
			v = append(v, math.Pow(2, float64(e))*(1+float64(f)/1024))
		}
	}
	return v
}

// Every number, the middle between each two neighbours and its neighbours in float64 round as IEEE 754 says: to the nearest, in the middle to the even one.
func TestF16Rounds(t *testing.T) {
	v := append(halves(), 65536) // what follows the largest one decides where infinity begins
	check := func(x float64, want uint16) {
		if got := ref.F16(x); got != want {
			t.Fatalf("F16(%g) = %#04x, want %#04x", x, got, want)
		}
		if got := ref.F16(-x); got != want|0x8000 {
			t.Fatalf("F16(-%g) = %#04x, want %#04x", x, got, want|0x8000)
		}
	}
	for i, x := range v[:len(v)-1] {
		h := uint16(i) // neighbours in value are neighbours as integers; 0x7c00 is infinity
		if got := ref.FromF16(h); got != x {
			t.Fatalf("FromF16(%#04x) = %g, want %g", h, got, x)
		}
		check(x, h)
		mid := (x + v[i+1]) / 2
		check(math.Nextafter(mid, 0), h)
		check(mid, h+h&1)
		check(math.Nextafter(mid, math.Inf(1)), h+1)
	}
	check(65536, 0x7c00)
	check(math.MaxFloat64, 0x7c00)
	check(math.Inf(1), 0x7c00)
	check(math.SmallestNonzeroFloat64, 0)
	if got := ref.F16(math.NaN()); got&0x7c00 != 0x7c00 || got&0x3ff == 0 || !math.IsNaN(ref.FromF16(got)) || !math.IsInf(ref.FromF16(0xfc00), -1) {
		t.Errorf("NaN is %#04x", got)
	}
}

// The device lists f16 on request only; an op computes in it either way, and what overflows is infinite.
func TestDeviceComputesF16OnRequest(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true} {
		o := npu.Options{Extra: map[string]string{"f16": value}}
		if value == "" {
			o.Extra = nil
		}
		d, err := ref.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(d.Info().Compute, npu.F16); got != want {
			t.Errorf("option %q: lists %v", value, d.Info().Compute)
		}
		d.Close()
	}
	for o, want := range map[npu.DType]bool{npu.Invalid: false, npu.BF16: false, npu.F16: true} {
		d, err := ref.Open(npu.Options{Compute: o})
		if err != nil || slices.Contains(d.Info().Compute, npu.F16) != want {
			t.Errorf("activations in %v wanted: %v", o, err)
		}
		d.Close()
	}
	if _, err := ref.Open(npu.Options{Extra: map[string]string{"f16": "maybe"}}); err == nil || !strings.Contains(err.Error(), "maybe") {
		t.Errorf("a wrong option: %v", err)
	}

	d, err := ref.Open(npu.Options{Extra: map[string]string{"f16": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.NewStream("test")
	if err != nil {
		t.Fatal(err)
	}
	x := npu.D(npu.F16, 4)
	k, err := d.Compile(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "mul"}, In: []npu.Desc{x, x}, Out: []npu.Desc{x}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	at := npu.Ptr{Buf: b}
	l, err := k.Bind([]npu.Ptr{at, at, at}, npu.Ptr{})
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, 8), make([]byte, 8)
	for i, v := range []float64{3, 256, 1.0 / 4096, 1.0 / 32} { // 9, infinity, the smallest subnormal, an exact number
		binary.LittleEndian.PutUint16(in[2*i:], ref.F16(v))
	}
	for _, err := range []error{s.CopyIn(at, in), s.Run([]npu.Launch{l}), s.CopyOut(out, at), s.Sync(context.Background())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []uint16{0x4880, 0x7c00, 1, 0x1400} {
		if got := binary.LittleEndian.Uint16(out[2*i:]); got != want {
			t.Errorf("element %d is %#04x, want %#04x", i, got, want)
		}
	}
}
