package augment

import (
	"math"
	"sync"

	"github.com/gotrain/gotrain/train/data"
)

// The ziggurat (Marsaglia and Tsang, J. Stat. Software 5(8), 2000, in Doornik's form of 2005, which gives the layer and the place in it bits of their own):
// the area under the density is covered with layers of one area. A point in a layer is nearly always below the curve; only otherwise, one time in a hundred,
// the density is computed.
const (
	layers    = 256
	tailFrom  = 3.6541528853610088     // where the lowest layer ends and the tail begins
	layerArea = 0.00492867323397465524 // of each layer; the lowest one includes the tail
)

// ziggurat has the widths of the layers, from the lowest one upwards, and the part of each that is below the curve for sure.
type ziggurat struct {
	width [layers + 1]float64
	sure  [layers]float64
}

var zig = sync.OnceValue(func() *ziggurat {
	z := &ziggurat{}
	// Logarithms of different processors may differ in the last bits, which are dropped: noise is the same everywhere.
	short := func(x float64) float64 { return math.Round(x*(1<<40)) / (1 << 40) }
	f := math.Exp(-tailFrom * tailFrom / 2)
	z.width[0], z.width[1] = short(layerArea/f), short(tailFrom)
	x := tailFrom
	for i := 2; i < layers; i++ { // the last width is 0
		x = math.Sqrt(-2 * math.Log(layerArea/x+f))
		f = math.Exp(-x * x / 2)
		z.width[i] = short(x)
	}
	for i := range z.sure {
		z.sure[i] = short(z.width[i+1] / z.width[i])
	}
	return z
})

// noise fills values with numbers of the normal distribution with mean 0 and standard deviation 1.
func noise(r *data.Rand, values []float32) {
	z := zig()
	for i := range values {
		bits := r.Uint64()
		u := float64(int64(bits)>>11) * 0x1p-52 // -1 to 1
		if l := byte(bits); math.Abs(u) < z.sure[l] {
			values[i] = float32(u * z.width[l])
		} else {
			values[i] = float32(z.rest(r, u, int(l)))
		}
	}
}

// rest decides about a point that may be above the curve, and draws others until one is below.
func (z *ziggurat) rest(r *data.Rand, u float64, l int) float64 {
	for {
		x := u * z.width[l]
		switch {
		case math.Abs(u) < z.sure[l]:
			return x
		case l == 0:
			return math.Copysign(tail(r), u)
		}
		hi, lo := z.density(l, x), z.density(l+1, x)
		if lo+float64(r.Float64()*(hi-lo)) < 1 {
			return x
		}
		bits := r.Uint64()
		u, l = float64(int64(bits)>>11)*0x1p-52, int(byte(bits))
	}
}

// density is that at the edge of a layer, in parts of that at x.
func (z *ziggurat) density(l int, x float64) float64 {
	return math.Exp((float64(x*x) - float64(z.width[l]*z.width[l])) / 2)
}

// tail draws from the part of the distribution that is greater than tailFrom (Marsaglia, 1964).
func tail(r *data.Rand) float64 {
	for {
		x, y := -math.Log(1-r.Float64())/tailFrom, -math.Log(1-r.Float64())
		if 2*y > float64(x*x) {
			return tailFrom + x
		}
	}
}
