package compress_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/ddp/compress"
)

// 16 bits lose what rounding to nearest loses, and nothing else: over all parameters and steps the error has the size of two roundings (of each rank's
// gradients, and of their sum), and neither a sign of its own nor one that follows the gradient: it does not shrink gradients or let them grow. They are as
// those of training: sums over 50 items a rank, of very different sizes.
func TestHalvesHaveNoBias(t *testing.T) {
	const steps = 12
	for _, name := range []string{"f16", "bf16"} {
		for _, ranks := range []int{2, 4} {
			g := group(t, ranks, name, compress.Options{Factor: compress.Factor(float64(50 * ranks))})
			unit := map[string]float64{"f16": 0x1p-11, "bf16": 0x1p-8}[name] // the largest relative error of a rounding
			n, norm, lost, along, signed, size := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
			for step := range int64(steps) {
				sums := train(g, step)
				each(t, g, func(r *rank) error { return r.reduce(step, 1) })
				for i := range sizes {
					pn, pl := 0.0, 0.0
					for j, v := range g[0].grad(i) {
						want := sums[i][j]
						e := float64(v) - want
						n, pn, pl = n+1, pn+want*want, pl+e*e
						along, signed, size = along+e*want, signed+e, size+math.Abs(want)
					}
					norm, lost = norm+pn, lost+pl
					if rel := math.Sqrt(pl / pn); sizes[i].Elems > 500 && (rel > 0.8*unit || rel < 0.3*unit) {
						t.Errorf("%s, %d ranks, step %d: %s is off by %.2g of its norm, want about %.2g", name, ranks, step, sizes[i].Name, rel, 0.55*unit)
					}
				}
			}
			// Errors that follow nothing add up to this much, one time in 10^6.
			chance := 5 * math.Sqrt(lost/norm)
			if by := along / norm; math.Abs(by)*math.Sqrt(n/200) > chance { // few large gradients dominate the norm
				t.Errorf("%s, %d ranks: gradients are %.2g times as long, chance explains %.2g", name, ranks, 1+by, chance/math.Sqrt(n/200))
			}
			if by := signed / size; math.Abs(by)*math.Sqrt(n/200) > chance {
				t.Errorf("%s, %d ranks: the mean error is %.2g of the mean size", name, ranks, by)
			}
			t.Logf("%s, %d ranks: error %.3g of the norm, along the gradient %+.2g, mean error %+.2g of the mean size", name, ranks, math.Sqrt(lost/norm),
				along/norm, signed/size)
		}
	}
}

// train fills gradients as those of training are: some parameters have means of 1e-2, some of 1e-7, and ranks agree in part.
func train(g []*rank, step int64) (sums [][]float64) {
	for i := range sizes {
		sums = append(sums, make([]float64, sizes[i].Elems))
	}
	for n, r := range g {
		common, own := rand.New(rand.NewPCG(uint64(step), 99)), rand.New(rand.NewPCG(uint64(step), uint64(n)))
		for i := range sizes {
			x := r.grad(i)
			for j := range x {
				x[j] = float32(50 * (common.NormFloat64() + own.NormFloat64()) * math.Exp2(float64(j/16%16-22)))
				sums[i][j] += float64(x[j])
			}
		}
	}
	return sums
}
