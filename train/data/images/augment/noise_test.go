package augment

import (
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// The noise has the normal distribution, in the middle and in its tails, and the numbers of one sample never change.
func TestNoiseIsNormal(t *testing.T) {
	const n = 1 << 20
	v := make([]float32, n)
	noise(data.NewRand(3), v)
	// Kolmogorov and Smirnov: the distance of the distributions is above 1.95/sqrt(n) once in a thousand seeds.
	slices.Sort(v)
	worst := 0.0
	for i, x := range v {
		p := math.Erfc(-float64(x)/math.Sqrt2) / 2
		worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
	}
	if worst > 1.95/math.Sqrt(n) {
		t.Errorf("the distance from the normal distribution is %g", worst)
	}
	for _, from := range []float64{1, 2, 3, 3.5, tailFrom, 4, 4.4} {
		want := n * math.Erfc(from/math.Sqrt2)
		got := 0
		for _, x := range v {
			if math.Abs(float64(x)) > from {
				got++
			}
		}
		if math.Abs(float64(got)-want) > 4*math.Sqrt(want) {
			t.Errorf("%d numbers of %d beyond %g, want %.0f", got, n, from, want)
		}
	}
	// Neighbours are independent: the correlation of squares, where generators that reuse bits fail, is of the order of 1/sqrt(n).
	noise(data.NewRand(4), v)
	var a, b float64
	for i := 1; i < n; i++ {
		x, y := float64(v[i-1]), float64(v[i])
		a, b = a+x*y, b+(x*x-1)*(y*y-1)
	}
	if math.Abs(a) > 4*math.Sqrt(n) || math.Abs(b) > 4*2*math.Sqrt(n) {
		t.Errorf("neighbours are correlated: %g, squares %g", a/n, b/2/n)
	}
	noise(data.NewRand(5), v[:4])
	if want := []float32{2.2776773, -1.3488992, -0.44854975, -0.5822788}; !slices.Equal(v[:4], want) {
		t.Errorf("the first numbers are %v, want %v", v[:4], want)
	}
}
