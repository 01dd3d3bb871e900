package ref_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// TestConvNaive compares with the definition, seven loops, on random shapes.
func TestConvNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		g, s, d, p := 1+r.IntN(
			3,
		), []int{
			1 + r.IntN(3),
			1 + r.IntN(3),
		}, []int{
			1 + r.IntN(2),
			1 + r.IntN(2),
		}, []int{
			r.IntN(3),
			r.IntN(3),
			r.IntN(3),
			r.IntN(3),
		}
		x := d64(1+r.IntN(2), g*(1+r.IntN(3)), 1+r.IntN(8), 1+r.IntN(8))
		w := d64(g*(1+r.IntN(3)), x.Shape[1]/g, 1+r.IntN(3), 1+r.IntN(3))
		oh := (x.Shape[2]+p[0]+p[2]-(w.Shape[2]-1)*d[0]-1)/s[0] + 1
		ow := (x.Shape[3]+p[1]+p[3]-(w.Shape[3]-1)*d[1]-1)/s[1] + 1
		y := d64(x.Shape[0], w.Shape[0], oh, ow)
		op := npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"groups": g, "stride": s, "dilation": d, "pad": p}, In: []npu.Desc{x, w}, Out: []npu.Desc{y}}
		if x.Shape[2]+p[0]+p[2] < (w.Shape[2]-1)*d[0]+1 || x.Shape[3]+p[1]+p[3] < (w.Shape[3]-1)*d[1]+1 {
			if ref.Check(op) == nil {
				t.Fatalf("kernel larger than input passes: %s", op)
			}
			continue
		}
		xv, wv := normal(r, x), normal(r, w)
		out := outputs(op)
		if err := ref.Run(op, [][]byte{f64s(xv), f64s(wv), out[0]}); err != nil {
			t.Fatal(err)
		}
		for i, got := range getF64(out[0]) {
			if want := convAt(x.Shape, w.Shape, y.Shape, g, s, d, p, xv, wv, i); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%s: element %d is %v, want %v", op, i, got, want)
			}
		}
	}
}

func normal(r *rand.Rand, d npu.Desc) []float64 {
	v := make([]float64, d.Shape.Elems())
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

func convAt(x, w, y npu.Shape, g int, s, d, p []int, xv, wv []float64, i int) float64 {
	ox, oy, o, n := i%y[3], i/y[3]%y[2], i/y[3]/y[2]%y[1], i/y[3]/y[2]/y[1]
	sum := 0.0
	for c := range w[1] {
		for ky := range w[2] {
			for kx := range w[3] {
				iy, ix := oy*s[0]+ky*d[0]-p[0], ox*s[1]+kx*d[1]-p[1]
				if iy >= 0 && iy < x[2] && ix >= 0 && ix < x[3] {
					ch := o/(w[0]/g)*w[1] + c
					sum += xv[((n*x[1]+ch)*x[2]+iy)*x[3]+ix] * wv[((o*w[1]+c)*w[2]+ky)*w[3]+kx]
				}
			}
		}
	}
	return sum
}

func TestDropout(t *testing.T) {
	const n, p = 1 << 16, 0.3
	op := npu.Op{
		Kind:  npu.Dropout,
		Attrs: npu.Attrs{"p": p, "id": 4},
		In:    []npu.Desc{npu.D(npu.F32, n), npu.D(npu.I64)},
		Out:   []npu.Desc{npu.D(npu.F32, n)},
	}
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	run := func(op npu.Op, seed int64) []byte {
		y := make([]byte, 4*n)
		if err := ref.Run(op, [][]byte{f32(ones...), binary.LittleEndian.AppendUint64(nil, uint64(seed)), y}); err != nil {
			t.Fatal(err)
		}
		return y
	}
	a := run(op, -7)
	kept := 0
	for _, v := range getF32(a) {
		if v != 0 {
			kept++
			if math.Abs(v-1/(1-p)) > 1e-6 {
				t.Fatalf("kept element is %v, want 1/(1-p)", v)
			}
		}
	}
	// binomial: the standard deviation of the rate is sqrt(p(1-p)/n) = 0.0018
	if rate := float64(kept) / n; math.Abs(rate-(1-p)) > 0.008 {
		t.Errorf("keep rate %v, want %v", rate, 1-p)
	}
	if !bytes.Equal(a, run(op, -7)) {
		t.Error("same seed, other mask")
	}
	if bytes.Equal(a, run(op, -8)) {
		t.Error("other seed, same mask")
	}
	op.Attrs = npu.Attrs{"p": p, "id": 5}
	if bytes.Equal(a, run(op, -7)) {
		t.Error("other layer, same mask")
	}
}

// TestCrossEntropyFormula: smoothing is the mean of the one-hot loss and the loss against the uniform distribution.
func TestCrossEntropyFormula(t *testing.T) {
	x := []float64{1, 2, 3, -1, 0, 5}
	op := npu.Op{
		Kind:  npu.CrossEntropy,
		Attrs: npu.Attrs{"smoothing": 0.1},
		In:    []npu.Desc{d64(2, 3), npu.D(npu.I32, 2)},
		Out:   []npu.Desc{d64(), d64(), d64(2)},
	}
	out := outputs(op)
	if err := ref.Run(op, append([][]byte{f64s(x), i32(2, -100)}, out...)); err != nil {
		t.Fatal(err)
	}
	lse := math.Log(math.Exp(1) + math.Exp(2) + math.Exp(3))
	want := 0.9*(lse-3) + 0.1*(lse-2) // mean of 1, 2, 3 is 2
	if got := getF64(out[0])[0]; math.Abs(got-want) > 1e-12 || getF64(out[1])[0] != 1 {
		t.Errorf("loss %v, count %v; want %v, 1", got, getF64(out[1])[0], want)
	}
}

func TestHandComputed(t *testing.T) {
	t.Run("binary broadcast", func(t *testing.T) {
		y := make([]byte, 24)
		op := npu.Op{
			Kind:  npu.Binary,
			Attrs: npu.Attrs{"fn": "sub", "relu": true},
			In:    []npu.Desc{npu.D(npu.F32, 2, 1), npu.D(npu.F32, 3)},
			Out:   []npu.Desc{npu.D(npu.F32, 2, 3)},
		}
		if err := ref.Run(op, [][]byte{f32(10, 2), f32(1, 2, 3), y}); err != nil {
			t.Fatal(err)
		}
		wantF32(t, y, 9, 8, 7, 1, 0, 0)
	})
	t.Run("maxpool NaN and padding", func(t *testing.T) {
		y, idx := make([]byte, 8), make([]byte, 8)
		op := npu.Op{
			Kind:  npu.MaxPool,
			Attrs: npu.Attrs{"kernel": []int{1, 2}, "stride": []int{1, 2}, "pad": []int{0, 1, 0, 0}},
			In:    []npu.Desc{npu.D(npu.F32, 1, 1, 1, 3)},
			Out:   []npu.Desc{npu.D(npu.F32, 1, 1, 1, 2), npu.D(npu.I32, 1, 1, 1, 2)},
		}
		if err := ref.Run(op, [][]byte{f32(-5, 1, float32(math.NaN())), y, idx}); err != nil {
			t.Fatal(err)
		}
		if v := getF32(y); v[0] != -5 || !math.IsNaN(v[1]) || !bytes.Equal(idx, i32(0, 2)) {
			t.Errorf("y %v idx %v", v, idx)
		}
	})
	t.Run("sumsq counts the non-finite", func(t *testing.T) {
		s := f64s([]float64{1, 2})
		op := npu.Op{Kind: npu.SumSq, In: []npu.Desc{npu.D(npu.F32, 3)}, Out: []npu.Desc{npu.D(npu.F64, 2)}}
		if err := ref.Run(op, [][]byte{f32(3, 4, 0), s}); err != nil {
			t.Fatal(err)
		}
		if v := getF64(s); v[0] != 26 || v[1] != 2 {
			t.Errorf("%v, want [26 2]", v)
		}
		if err := ref.Run(op, [][]byte{f32(float32(math.Inf(1)), 4, 0), s}); err != nil {
			t.Fatal(err)
		}
		if v := getF64(s); v[1] != 3 {
			t.Errorf("%v, want 3 non-finite", v)
		}
	})
}

func TestBF16Rounding(t *testing.T) {
	for _, c := range []struct {
		v    float32
		want uint16
	}{
		{1, 0x3f80}, {1 + 1.0/256, 0x3f80} /* tie to even */, {1 + 3.0/256, 0x3f82} /* tie to even, up */, {1 + 1.0/256 + 1e-6, 0x3f81},
		{float32(math.Inf(-1)), 0xff80}, {math.MaxFloat32, 0x7f80}, {0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {math.Float32frombits(1), 0}, {math.Float32frombits(0x18000), 2},
	} {
		if got := ref.BF16(c.v); got != c.want {
			t.Errorf("BF16(%v) = %#x, want %#x", c.v, got, c.want)
		}
	}
	if got := ref.BF16(math.Float32frombits(0x7f800001)); got&0x7f80 != 0x7f80 || got&0x7f == 0 {
		t.Errorf("NaN became %#x", got)
	}
}

// TestF16RoundTrip: every half that is not NaN survives the way to float64 and back; values between two halves go to the even one.
func TestF16RoundTrip(t *testing.T) {
	all := make([]byte, 0, 1<<17)
	for h := range 1 << 16 {
		if h&0x7c00 != 0x7c00 || h&0x3ff == 0 {
			all = binary.LittleEndian.AppendUint16(all, uint16(h))
		}
	}
	n := len(all) / 2
	up := npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(npu.F16, n)}, Out: []npu.Desc{npu.D(npu.F64, n)}}
	down := npu.Op{Kind: npu.Convert, In: up.Out, Out: up.In}
	wide, back := make([]byte, 8*n), make([]byte, 2*n)
	if err := ref.Run(up, [][]byte{all, wide}); err != nil {
		t.Fatal(err)
	}
	if err := ref.Run(down, [][]byte{wide, back}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all, back) {
		t.Error("a half does not survive")
	}
	tie := npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(npu.F64, 4)}, Out: []npu.Desc{npu.D(npu.F16, 4)}}
	got := make([]byte, 8)
	if err := ref.Run(tie, [][]byte{f64s([]float64{1 + 0x1p-11, 1 + 3*0x1p-11, 65519.99, 2047.9 * 0x1p-25}), got}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint16{0x3c00, 0x3c02, 0x7bff, 0x0400} {
		if h := binary.LittleEndian.Uint16(got[2*i:]); h != want {
			t.Errorf("tie %d: %#x, want %#x", i, h, want)
		}
	}
}
