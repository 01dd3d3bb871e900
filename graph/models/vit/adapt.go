package vit

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Adapt makes learned positions [1 tokens D] fit pictures of another size, as timm does: the positions of the patches form a square picture of D channels,
// which is resized by bicubic interpolation with antialiasing; those of the class token stay. It returns the function that does so, or nil where the parameter
// is another one or cannot be adapted.
func Adapt(param string, has, want npu.Shape) func([]float32) []float32 {
	if param != "pos_embed" || len(has) != 3 || len(want) != 3 || has[0] != 1 || want[0] != 1 || has[2] != want[2] {
		return nil
	}
	for prefix := range 2 {
		from, to := side(has[1]-prefix), side(want[1]-prefix)
		if from > 0 && to > 0 {
			return func(v []float32) []float32 { return resample(v, prefix, from, to, has[2]) }
		}
	}
	return nil
}

// side is the square root of a square, otherwise 0.
func side(n int) int {
	s := int(math.Round(math.Sqrt(float64(max(n, 0)))))
	if s*s != n {
		return 0
	}
	return s
}

// resample resizes from×from tokens of d numbers, behind prefix others, to to×to.
func resample(v []float32, prefix, from, to, d int) []float32 {
	keep := prefix * d
	grid, rows := v[keep:], make([]float64, to*from*d)
	taps := cubic(from, to)
	for y, t := range taps { // rows: to×from
		for k, w := range t.weights {
			for i := range from * d {
				rows[y*from*d+i] += w * float64(grid[(t.first+k)*from*d+i])
			}
		}
	}
	out := make([]float32, keep+to*to*d)
	copy(out, v[:keep])
	for y := range to {
		for x, t := range taps {
			for i := range d {
				var sum float64
				for k, w := range t.weights {
					sum += w * rows[(y*from+t.first+k)*d+i]
				}
				out[keep+(y*to+x)*d+i] = float32(sum)
			}
		}
	}
	return out
}

// tap is what an element of the result takes from the source.
type tap struct {
	first   int
	weights []float64
}

// cubic are the taps of a bicubic interpolation with antialiasing along one axis: Keys' function with -1/2, stretched where the result is smaller, and what
// lies outside the source left out. It is that of Pillow and of PyTorch's interpolate(mode="bicubic", antialias=True).
func cubic(from, to int) []tap {
	const a = -0.5
	f := func(x float64) float64 {
		switch x = math.Abs(x); {
		case x < 1:
			return ((a+2)*x-(a+3))*x*x + 1
		case x < 2:
			return (((x-5)*x+8)*x - 4) * a
		}
		return 0
	}
	scale := float64(from) / float64(to)
	wide := max(scale, 1)
	taps := make([]tap, to)
	for i := range taps {
		center := scale * (float64(i) + 0.5)
		lo := max(int(center-2*wide+0.5), 0)
		hi := min(int(center+2*wide+0.5), from)
		t, sum := tap{first: lo}, 0.0
		for j := lo; j < hi; j++ {
			w := f((float64(j) - center + 0.5) / wide)
			t.weights = append(t.weights, w)
			sum += w
		}
		for k := range t.weights {
			t.weights[k] /= sum
		}
		taps[i] = t
	}
	return taps
}
