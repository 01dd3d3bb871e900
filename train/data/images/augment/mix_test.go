package augment

import (
	"context"
	"math"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// Targets are timm's mixup_target.
func TestTargetsEqualTimm(t *testing.T) {
	for _, f := range load(t).Targets {
		m := Mix{Classes: f.Classes, Smoothing: f.Smoothing}
		n := len(f.Labels)
		for i, own := range f.Labels {
			got := make([]float32, f.Classes)
			m.Target(got, own, f.Labels[n-1-i], f.Lam)
			for c, v := range got {
				if math.Abs(float64(v)-f.Target[i][c]) > 1e-6 {
					t.Errorf("%+v: row %d class %d is %v, want %v", f, i, c, v, f.Target[i][c])
				}
			}
		}
	}
}

// Mixup moves both pictures towards each other; cutmix swaps a rectangle, whose area gives λ.
func TestPicturesAreMixed(t *testing.T) {
	const c, h, w = 3, 20, 30
	full := func(v float32) []float32 {
		x := make([]float32, c*h*w)
		for i := range x {
			x[i] = v
		}
		return x
	}
	r := data.NewRand(4)
	var sum float64
	for range 300 {
		a, b := full(0), full(1)
		lam := Mix{Mixup: 1, Classes: 2}.Pictures(r, a, b, c, h, w)
		if math.Abs(float64(a[7])-(1-lam)) > 1e-6 || math.Abs(float64(b[7])-lam) > 1e-6 {
			t.Fatalf("λ %g: pixels %v and %v", lam, a[7], b[7])
		}
		a, b = full(0), full(1)
		lam = Mix{Cutmix: 1, Classes: 2}.Pictures(r, a, b, c, h, w)
		other := 0.0
		for i := range a {
			other += float64(a[i])
			if a[i]+b[i] != 1 {
				t.Fatal("a pixel is lost")
			}
		}
		if math.Abs(other/(c*h*w)-(1-lam)) > 1e-9 {
			t.Fatalf("λ %g, but %g of the area is the other's", lam, other/(c*h*w))
		}
		sum += lam
	}
	// A rectangle that is cut off at the border leaves more than half.
	if mean := sum / 300; mean < 0.5 || mean > 0.75 {
		t.Errorf("mean λ of cutmix %g", mean)
	}
}

// The distributions have the moments that they should have.
func TestBeta(t *testing.T) {
	for _, a := range []float64{0.1, 0.4, 1, 3} {
		r := data.NewRand(11)
		var sum, squares float64
		const n = 20000
		for range n {
			v := beta(r, a)
			if !(v >= 0 && v <= 1) {
				t.Fatal(v)
			}
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / n
		variance, want := squares/n-mean*mean, 1/(4*(2*a+1))
		if math.Abs(mean-0.5) > 0.02 || math.Abs(variance/want-1) > 0.05 {
			t.Errorf("beta(%g): mean %g, variance %g, want 0.5 and %g", a, mean, variance, want)
		}
	}
}

// A mixed source: targets sum to one, and a label that no class has is an error.
func TestMixedSource(t *testing.T) {
	src, err := data.NewSynthetic(1, 8, 4, 3, 6, 5)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMixed(src, Mix{Mixup: 0.5, Cutmix: 0.5, Classes: 4, Smoothing: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := data.NewLoader(m, data.Options{Batch: 4, Shuffle: true, Tail: data.Pad, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for row := range 4 {
		sum, best := float32(0), 0
		target := b.F32(2)[row*4:][:4]
		for c, v := range target {
			sum += v
			if v > target[best] {
				best = c
			}
		}
		if math.Abs(float64(sum)-1) > 1e-6 || target[b.I32(1)[row]] != target[best] {
			t.Errorf("row %d: target %v with label %d", row, target, b.I32(1)[row])
		}
	}
	few, err := NewMixed(src, Mix{Mixup: 0.5, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	dst := [][]byte{make([]byte, 3*6*5*4), make([]byte, 4), make([]byte, 8)}
	if err := few.Load(context.Background(), data.NewRand(1), 3, dst); err == nil {
		t.Error("label 3 of two classes is accepted")
	}
	if _, err := NewMixed(m, Mix{Classes: 4}); err == nil {
		t.Error("a mixed source is mixed again")
	}
}

// What is not drawn with this probability is not erased, and rectangles lie inside.
func TestErase(t *testing.T) {
	const c, h, w = 2, 16, 24
	erased := 0
	r := data.NewRand(2)
	for range 400 {
		x := make([]float32, c*h*w)
		for i := range x {
			x[i] = 1
		}
		Erase{Prob: 0.5}.Apply(r, x, c, h, w)
		n := 0
		for i, v := range x {
			if v == 0 {
				n++
				if x[i%(h*w)] != 0 {
					t.Fatal("planes differ")
				}
			}
		}
		if n > 0 {
			erased++
			if part := float64(n) / (c * h * w); part < 0.01 || part > 0.4 {
				t.Errorf("%g of the area is erased", part)
			}
		}
	}
	if erased < 160 || erased > 240 {
		t.Errorf("%d of 400 erased, want about half", erased)
	}
	for _, e := range []Erase{{Prob: 2}, {Prob: 1, Area: [2]float64{0.5, 0.1}}, {Prob: math.NaN()}} {
		if e.Check() == nil {
			t.Errorf("%+v is accepted", e)
		}
	}
}
