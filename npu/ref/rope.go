package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var ropeKinds = map[string]spec{npu.Rope: {checkRope, runRope}}

func checkRope(c *checker) {
	a := c.op.Attrs
	if !c.ins(1+toInt01(a.Bool("pos"))) || !c.floats(0) || !c.rank(0, 4) {
		return
	}
	x := c.in(0)
	low, high := a.Float("low", 0), a.Float("high", 0)
	switch p := a.Str("pairs"); {
	case x[3]%2 != 0:
		c.fail("heads of x %v have an odd width, but elements are rotated in pairs", x)
	case p != "half" && p != "adjacent":
		c.fail("attribute pairs is %q, must be half or adjacent", p)
	case !(a.Float("theta", 0) > 0):
		c.fail("attribute theta is %v, must be above 0", a["theta"])
	case a.Float("factor", 0) > 1 && !(low > 0 && high > low && a.Int("original", 0) > 0):
		c.fail("scaling requires 0 < low < high and original above 0, has low %v, high %v, original %v", a["low"], a["high"], a["original"])
	case a.Bool("pos") && !(c.isType(1, npu.I32) && c.shape(1, x[0], x[1])):
	default:
		c.outs(x)
	}
}

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
