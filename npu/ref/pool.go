package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var poolKinds = map[string]body{
	npu.MaxPool:          runMaxPool,
	npu.MaxPoolBwd:       runMaxPoolBwd,
	npu.AvgPool:          runAvgPool,
	npu.AvgPoolBwd:       runAvgPoolBwd,
	npu.GlobalAvgPool:    runGap,
	npu.GlobalAvgPoolBwd: runGapBwd,
}

// poolWindows are the two windows of a pooling from x to y.
func poolWindows(a npu.Attrs, x, y npu.Shape) (v, h window) {
	k := a.Ints("kernel")
	return geometry(a, x, k[0], k[1], y[2], y[3])
}

// taps calls fn with each input position of the plane that the window at (oy, ox) covers.
func taps(v, h window, oy, ox int, fn func(i int)) {
	for ky := range v.kernel {
		y := oy*v.stride + ky*v.dilation - v.pad
		if y < 0 || y >= v.in {
			continue
		}
		for kx := range h.kernel {
			if x := ox*h.stride + kx*h.dilation - h.pad; x >= 0 && x < h.in {
				fn(y*h.in + x)
			}
		}
	}
}

func runMaxPool(c *call) error {
	xs, ys := c.op.In[0].Shape, c.op.Out[0].Shape
	v, h := poolWindows(c.op.Attrs, xs, ys)
	x, y, xp, yp := c.in(0), c.out(0), xs[2]*xs[3], ys[2]*ys[3]
	idx := c.optOut(1, len(y))
	c.parallel(xs[0]*xs[1], func(p int) {
		in := x[p*xp:][:xp]
		for o := range yp {
			best, at := math.Inf(-1), -1
			taps(v, h, o/ys[3], o%ys[3], func(i int) {
				if t := in[i]; at < 0 || t > best || t != t && best == best {
					best, at = t, i
				}
			})
			y[p*yp+o], idx[p*yp+o] = best, float64(at)
		}
	})
	return nil
}

func runMaxPoolBwd(c *call) error {
	ys, xs := c.op.In[0].Shape, c.op.Out[0].Shape
	dy, dx, raw := c.in(0), c.out(0), c.rawIn(1)
	xp, yp := xs[2]*xs[3], ys[2]*ys[3]
	for o, g := range dy {
		i := int(loadInt(raw, o, npu.I32))
		if i >= xp {
			return errIndex(o, i, xp)
		}
		if i >= 0 {
			dx[o/yp*xp+i] += g
		}
	}
	return nil
}

// divisor is the number of positions that an average covers.
func divisor(v, h window, oy, ox int, includePad bool) float64 {
	if includePad {
		return float64(v.kernel * h.kernel)
	}
	n := 0
	taps(v, h, oy, ox, func(int) { n++ })
	return float64(max(n, 1))
}

func runAvgPool(c *call) error {
	xs, ys := c.op.In[0].Shape, c.op.Out[0].Shape
	v, h := poolWindows(c.op.Attrs, xs, ys)
	x, y, xp, yp := c.in(0), c.out(0), xs[2]*xs[3], ys[2]*ys[3]
	pad := c.op.Attrs.Bool("include_pad")
	c.parallel(xs[0]*xs[1], func(p int) {
		in := x[p*xp:][:xp]
		for o := range yp {
			sum := 0.0
			taps(v, h, o/ys[3], o%ys[3], func(i int) { sum += in[i] })
			y[p*yp+o] = sum / divisor(v, h, o/ys[3], o%ys[3], pad)
		}
	})
	return nil
}

func runAvgPoolBwd(c *call) error {
	ys, xs := c.op.In[0].Shape, c.op.Out[0].Shape
	v, h := poolWindows(c.op.Attrs, xs, ys)
	dy, dx, xp, yp := c.in(0), c.out(0), xs[2]*xs[3], ys[2]*ys[3]
	pad := c.op.Attrs.Bool("include_pad")
	c.parallel(xs[0]*xs[1], func(p int) {
		out := dx[p*xp:][:xp]
		for o := range yp {
			g := dy[p*yp+o] / divisor(v, h, o/ys[3], o%ys[3], pad)
			taps(v, h, o/ys[3], o%ys[3], func(i int) { out[i] += g })
		}
	})
	return nil
}

func runGap(c *call) error {
	s := c.op.In[0].Shape
	x, y, plane := c.in(0), c.out(0), s[2]*s[3]
	for p := range y {
		for _, v := range x[p*plane:][:plane] {
			y[p] += v
		}
		y[p] /= float64(plane)
	}
	return nil
}

func runGapBwd(c *call) error {
	s := c.op.Out[0].Shape
	dy, dx, plane := c.in(0), c.out(0), s[2]*s[3]
	for i := range dx {
		dx[i] = dy[i/plane] / float64(plane)
	}
	return nil
}
