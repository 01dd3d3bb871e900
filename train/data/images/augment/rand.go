package augment

import (
	"math"

	"github.com/gotrain/gotrain/train/data"
)

// normal draws from the normal distribution with mean 0 and standard deviation 1 (Marsaglia's polar method).
func normal(r *data.Rand) float64 {
	for {
		x, y := r.Uniform(-1, 1), r.Uniform(-1, 1)
		if s := float64(x*x) + float64(y*y); s > 0 && s < 1 {
			return x * math.Sqrt(-2*math.Log(s)/s)
		}
	}
}

// gamma draws from the gamma distribution with shape a (Marsaglia and Tsang, ACM TOMS 26, 2000).
func gamma(r *data.Rand, a float64) float64 {
	if a < 1 {
		return gamma(r, a+1) * math.Pow(1-r.Float64(), 1/a) // 1-u is never 0
	}
	d := a - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normal(r)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - r.Float64(); math.Log(u) < float64(0.5*x*x)+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v
		}
	}
}

// beta draws from the beta distribution with both shapes a.
func beta(r *data.Rand, a float64) float64 {
	x, y := gamma(r, a), gamma(r, a)
	if x+y == 0 { // both underflowed: a is tiny, and the distribution nearly 0 or 1
		if r.Bool(0.5) {
			return 1
		}
		return 0
	}
	return x / (x + y)
}
