package graph

import (
	"math"
	"math/rand/v2"
)

// draw makes numbers from PCG, whose sequence is fixed by its definition; what is built on it is spelt out here, so that no release of
// Go changes a start value.
type draw struct{ pcg *rand.PCG }

// unit is uniform in [0, 1).
func (d draw) unit() float64 { return float64(d.pcg.Uint64()>>11) * 0x1p-53 }

// The ziggurat of Marsaglia and Tsang (Journal of Statistical Software 5(8), 2000): the half of the bell is cut into layers of equal area zigV, the lowest
// of which holds the tail beyond zigR. Five times as fast as Box and Muller's method, which counts: a network of 25 million weights has to start.
const (
	zigLayers = 128
	zigR      = 3.442619855899
	zigV      = 9.91256303526217e-3
)

// zigX are the right ends of the layers, from the bottom; zigIn the share of a layer that lies under the curve for sure.
var zigX, zigIn = func() (x [zigLayers + 1]float64, in [zigLayers]float64) {
	f := math.Exp(-0.5 * zigR * zigR)
	x[0], x[1] = zigV/f, zigR
	for i := 2; i < zigLayers; i++ {
		x[i] = math.Sqrt(-2 * math.Log(zigV/x[i-1]+f))
		f = math.Exp(-0.5 * x[i] * x[i])
	}
	for i := range in {
		in[i] = x[i+1] / x[i]
	}
	return x, in
}()

// normal has mean 0 and deviation 1.
func (d draw) normal() float64 {
	for {
		bits := d.pcg.Uint64()
		i := bits % zigLayers              // the low 7 bits
		u := float64(bits>>11)*0x1p-52 - 1 // the high 53: uniform in [-1, 1)
		if math.Abs(u) < zigIn[i] {
			return u * zigX[i]
		}
		if i == 0 {
			return math.Copysign(d.tail(), u)
		}
		x := u * zigX[i]
		top := math.Exp(-0.5 * (zigX[i]*zigX[i] - x*x))
		low := math.Exp(-0.5 * (zigX[i+1]*zigX[i+1] - x*x))
		if low+d.unit()*(top-low) < 1 {
			return x
		}
	}
}

// tail is a normal beyond zigR.
func (d draw) tail() float64 {
	for {
		x := -math.Log(1-d.unit()) / zigR
		if y := -math.Log(1 - d.unit()); 2*y >= x*x {
			return zigR + x
		}
	}
}

// truncated is a normal cut off at ±cut, by rejection: of normals, or where a cut below one deviation would reject most of them, of uniforms.
func (d draw) truncated(cut float64) float64 {
	for {
		if cut < 1 {
			if v := cut * (2*d.unit() - 1); d.unit() <= math.Exp(-0.5*v*v) {
				return v
			}
			continue
		}
		if v := d.normal(); v >= -cut && v <= cut {
			return v
		}
	}
}
