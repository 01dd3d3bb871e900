package ref

import "github.com/gotrain/gotrain/npu"

var convKinds = map[string]body{
	npu.Conv2D:           runConv,
	npu.Conv2DBwdData:    runConvBwdData,
	npu.Conv2DBwdWeights: runConvBwdWeights,
}

// window describes how a kernel slides along one axis: output position p and tap k read input position p*stride + k*dilation - pad.
type window struct{ in, out, kernel, stride, dilation, pad int }

// span returns the output positions lo…hi-1 for which tap k is inside the input, and the input position of output position 0.
func (w window) span(k int) (lo, hi, origin int) {
	origin = k*w.dilation - w.pad
	if origin < 0 {
		lo = (-origin + w.stride - 1) / w.stride
	}
	if last := w.in - 1 - origin; last >= 0 {
		hi = min(w.out, last/w.stride+1)
	}
	return min(lo, hi), hi, origin
}

// geometry reads stride, pad and dilation of a sliding kernel over the shape's last two axes.
func geometry(a npu.Attrs, x npu.Shape, kh, kw, oh, ow int) (v, h window) {
	s, p, d := attrInts(a, "stride", []int{1, 1}), attrInts(a, "pad", []int{0, 0, 0, 0}), attrInts(a, "dilation", []int{1, 1})
	return window{x[2], oh, kh, s[0], d[0], p[0]}, window{x[3], ow, kw, s[1], d[1], p[1]}
}

func toInt01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// convTaps calls fn for each tap of the kernel between input channel plane xp and output plane yp, once per output row: output
// positions lo…hi-1 of row y read input row x at origin + position*stride.
func convTaps(v, h window, fn func(tap, yRow, xRow, lo, hi, origin int)) {
	for ky := range v.kernel {
		y0, y1, top := v.span(ky)
		for kx := range h.kernel {
			lo, hi, left := h.span(kx)
			if lo >= hi {
				continue
			}
			for y := y0; y < y1; y++ {
				fn(ky*h.kernel+kx, y*h.out, (top+y*v.stride)*h.in, lo, hi, left)
			}
		}
	}
}

func runConv(c *call) error {
	xs, ws, ys := c.op.In[0].Shape, c.op.In[1].Shape, c.op.Out[0].Shape
	x, w, y := c.in(0), c.in(1), c.out(0)
	v, h := geometry(c.op.Attrs, xs, ws[2], ws[3], ys[2], ys[3])
	var b []float64
	if c.op.Attrs.Bool("bias") {
		b = c.in(2)
	}
	relu := c.op.Attrs.Bool("relu")
	cg, og, taps := ws[1], ws[0]/c.op.Attrs.Int("groups", 1), ws[2]*ws[3]
	xPlane, yPlane := xs[2]*xs[3], ys[2]*ys[3]
	c.parallel(ys[0]*ys[1], func(i int) {
		n, o := i/ys[1], i%ys[1]
		yp := y[i*yPlane:][:yPlane]
		if b != nil {
			for j := range yp {
				yp[j] = b[o]
			}
		}
		for ci := range cg {
			xp, wp := x[(n*xs[1]+o/og*cg+ci)*xPlane:][:xPlane], w[(o*cg+ci)*taps:][:taps]
			convTaps(v, h, func(tap, yRow, xRow, lo, hi, left int) {
				axpyStrided(yp[yRow+lo:yRow+hi], wp[tap], xp[xRow+left+lo*h.stride:], h.stride)
			})
		}
		if relu {
			for j, t := range yp {
				yp[j] = reluOf(t)
			}
		}
	})
	return nil
}

// axpyStrided: y[i] += a * x[i*stride].
func axpyStrided(y []float64, a float64, x []float64, stride int) {
	if stride == 1 {
		x = x[:len(y)]
		for i := range y {
			y[i] += a * x[i]
		}
		return
	}
	for i := range y {
		y[i] += a * x[i*stride]
	}
}

func runConvBwdData(c *call) error {
	ys, ws, xs := c.op.In[0].Shape, c.op.In[1].Shape, c.op.Out[0].Shape
	dy, w, dx := c.in(0), c.in(1), c.out(0)
	v, h := geometry(c.op.Attrs, xs, ws[2], ws[3], ys[2], ys[3])
	cg, og, taps := ws[1], ws[0]/c.op.Attrs.Int("groups", 1), ws[2]*ws[3]
	xPlane, yPlane := xs[2]*xs[3], ys[2]*ys[3]
	c.parallel(xs[0]*xs[1], func(i int) {
		n, ci := i/xs[1], i%xs[1]
		xp := dx[i*xPlane:][:xPlane]
		for o := ci / cg * og; o < (ci/cg+1)*og; o++ {
			yp, wp := dy[(n*ys[1]+o)*yPlane:][:yPlane], w[(o*cg+ci%cg)*taps:][:taps]
			convTaps(v, h, func(tap, yRow, xRow, lo, hi, left int) {
				a, row := wp[tap], xp[xRow+left+lo*h.stride:]
				for j, t := range yp[yRow+lo : yRow+hi] {
					row[j*h.stride] += a * t
				}
			})
		}
	})
	return nil
}

func runConvBwdWeights(c *call) error {
	xs, ys, ws := c.op.In[0].Shape, c.op.In[1].Shape, c.op.Out[0].Shape
	x, dy, dw := c.in(0), c.in(1), c.out(0)
	v, h := geometry(c.op.Attrs, xs, ws[2], ws[3], ys[2], ys[3])
	cg, og, taps := ws[1], ws[0]/c.op.Attrs.Int("groups", 1), ws[2]*ws[3]
	xPlane, yPlane := xs[2]*xs[3], ys[2]*ys[3]
	c.parallel(ws[0]*cg, func(i int) {
		o, ci := i/cg, i%cg
		wp := dw[i*taps:][:taps]
		for n := range xs[0] {
			xp, yp := x[(n*xs[1]+o/og*cg+ci)*xPlane:][:xPlane], dy[(n*ys[1]+o)*yPlane:][:yPlane]
			convTaps(v, h, func(tap, yRow, xRow, lo, hi, left int) {
				sum, row := 0.0, xp[xRow+left+lo*h.stride:]
				for j, t := range yp[yRow+lo : yRow+hi] {
					sum += t * row[j*h.stride]
				}
				wp[tap] += sum
			})
		}
	})
	if len(c.op.Out) > 1 {
		db := c.out(1)
		for i := range ys[0] * ys[1] {
			for _, t := range dy[i*yPlane:][:yPlane] {
				db[i%ys[1]] += t
			}
		}
	}
	return nil
}

func attrInts(a npu.Attrs, key string, def []int) []int {
	if v := a.Ints(key); v != nil {
		return v
	}
	return def
}
