package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var ropeKinds = map[string]body{npu.Rope: runRope}

// frequency is the angle per position of pair i of heads of width d, with the scaling of Llama 3.1.
func frequency(a npu.Attrs, i, d int) float64 {
	f := math.Pow(a.Float("theta", 0), -2*float64(i)/float64(d))
	factor := a.Float("factor", 0)
	if !(factor > 1) {
		return f
	}
	low, high, original := a.Float("low", 0), a.Float("high", 0), float64(a.Int("original", 0))
	wave := 2 * math.Pi / f
	switch {
	case wave < original/high:
		return f
	case wave > original/low:
		return f / factor
	}
	t := (original/wave - low) / (high - low)
	return (1-t)*f/factor + t*f
}

func runRope(c *call) error {
	a, s := c.op.Attrs, c.op.In[0].Shape
	heads, d := s[2], s[3]
	x, y := c.in(0), c.out(0)
	f := make([]float64, d/2)
	for i := range f {
		f[i] = frequency(a, i, d)
	}
	first, step := 1, d/2 // of a pair i: elements first*i and first*i + step
	if a.Str("pairs") == "adjacent" {
		first, step = 2, 1
	}
	c.parallel(s[0]*s[1], func(r int) {
		p := float64(r % s[1])
		if a.Bool("pos") {
			p = float64(loadInt(c.rawIn(1), r, npu.I32))
		}
		for i := range f {
			sin, cos := math.Sincos(p * f[i])
			sin, cos = float64(float32(sin)), float64(float32(cos))
			if a.Bool("inverse") {
				sin = -sin
			}
			for h := range heads {
				u := (r*heads+h)*d + first*i
				v := u + step
				y[u], y[v] = x[u]*cos-x[v]*sin, x[v]*cos+x[u]*sin
			}
		}
	})
	return nil
}
