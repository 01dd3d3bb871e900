package data

import (
	"context"
	"math"
	"slices"
	"testing"
)

func TestSynthetic(t *testing.T) {
	s, err := NewSynthetic(7, 1000, 10, 3, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	load := func(s Source, i int) ([]float32, int32) {
		dst := [][]byte{make([]byte, 3*16*16*4), make([]byte, 4)}
		if err := s.Load(context.Background(), NewRand(uint64(i)), i, dst); err != nil {
			t.Fatal(err)
		}
		return F32(dst[0]), I32(dst[1])[0]
	}
	labels := map[int32]bool{}
	sum, sq, n := 0.0, 0.0, 0.0
	for i := range 40 {
		x, y := load(s, i)
		labels[y] = true
		for _, v := range x {
			sum, sq, n = sum+float64(v), sq+float64(v)*float64(v), n+1
		}
	}
	if len(labels) != 10 {
		t.Errorf("%d classes in 40 samples, want 10", len(labels))
	}
	if mean, dev := sum/n, math.Sqrt(sq/n); math.Abs(mean) > 0.03 || math.Abs(dev-1) > 0.03 { // five deviations of 1/√30720
		t.Errorf("mean %.3f, deviation %.3f", mean, dev)
	}
	again, _ := NewSynthetic(7, 1000, 10, 3, 16, 16)
	other, _ := NewSynthetic(8, 1000, 10, 3, 16, 16)
	a, _ := load(s, 5)
	b, _ := load(again, 5)
	c, _ := load(other, 5)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the seed does not decide the samples")
	}
	fa, _ := s.Fingerprint()
	fb, _ := again.Fingerprint()
	fc, _ := other.Fingerprint()
	if fa != fb || fa == fc {
		t.Errorf("fingerprints %s %s %s", fa, fb, fc)
	}
	for _, bad := range [][]int{{0, 1, 4}, {1, 0, 4}, {1, 1}, {1, 1, 0}} {
		if _, err := NewSynthetic(0, bad[0], bad[1], bad[2:]...); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
