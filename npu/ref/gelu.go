package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var geluKinds = map[string]body{
	npu.Gelu:    runGelu,
	npu.GeluBwd: runGeluBwd,
}

// gelu gives the value and the slope at x, exact or in the form with tanh.
func gelu(x float64, tanh bool) (y, slope float64) {
	if tanh {
		const a = 0.044715
		k := math.Sqrt(2 / math.Pi)
		t := math.Tanh(k * (x + a*x*x*x))
		return 0.5 * x * (1 + t), 0.5*(1+t) + 0.5*x*(1-t*t)*k*(1+3*a*x*x)
	}
	p := 0.5 * math.Erfc(-x/math.Sqrt2) // erf + 1 would cancel
	return x * p, p + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

func runGelu(c *call) error {
	x, y, tanh := c.in(0), c.out(0), c.op.Attrs.Str("approximate") == "tanh"
	c.chunks(len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i], _ = gelu(x[i], tanh)
		}
	})
	return nil
}

func runGeluBwd(c *call) error {
	dy, x, dx, tanh := c.in(0), c.in(1), c.out(0), c.op.Attrs.Str("approximate") == "tanh"
	c.chunks(len(dx), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			_, slope := gelu(x[i], tanh)
			dx[i] = dy[i] * slope
		}
	})
	return nil
}
