package kind

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// RopeFrequencies returns f(i) of [npu.Rope], by pair of a head of width d: the angle between adjacent positions, scaled as in Llama 3.1 where the attributes
// say so. npu/ref does not use it: as the oracle of kernel tests it has a formula of its own.
func RopeFrequencies(a npu.Attrs, d int) []float64 {
	f := make([]float64, d/2)
	factor, low, high, original := a.Float("factor", 0), a.Float("low", 0), a.Float("high", 0), float64(a.Int("original", 0))
	for i := range f {
		f[i] = math.Pow(a.Float("theta", 1), -2*float64(i)/float64(d))
		if factor > 1 {
			switch wave := 2 * math.Pi / f[i]; {
			case wave < original/high:
			case wave > original/low:
				f[i] /= factor
			default:
				t := (original/wave - low) / (high - low)
				f[i] = (1-t)*f[i]/factor + t*f[i]
			}
		}
	}
	return f
}
