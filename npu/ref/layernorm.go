package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var layerNormKinds = map[string]body{
	npu.LayerNorm:    runLayerNorm,
	npu.LayerNormBwd: runLayerNormBwd,
}

func runLayerNorm(c *call) error {
	a, xs := c.op.Attrs, c.op.In[0].Shape
	d := xs[len(xs)-1]
	rows := int(xs[:len(xs)-1].Elems())
	s, w, b, y, eps := c.in(0), c.in(1), c.in(2), c.out(0), a.Float("eps", 1e-5)
	mean, rstd := c.optOut(1, rows), c.optOut(2, rows)
	if a.Bool("add") {
		for i, v := range c.in(3) {
			s[i] += v
		}
		c.rounded(s, c.op.In[0].DType) // the next layer adds to the same values that are normalised
		copy(c.optOut(3, len(s)), s)
	}
	c.parallel(rows, func(r int) {
		row, sum, sq := s[r*d:][:d], 0.0, 0.0
		for _, v := range row {
			sum += v
		}
		m := sum / float64(d)
		for _, v := range row {
			sq += (v - m) * (v - m)
		}
		mean[r], rstd[r] = m, 1/math.Sqrt(sq/float64(d)+eps)
		for j, v := range row {
			y[r*d+j] = (v-m)*rstd[r]*w[j] + b[j]
		}
	})
	return nil
}

func runLayerNormBwd(c *call) error {
	xs := c.op.In[1].Shape
	d := xs[len(xs)-1]
	rows := int(xs[:len(xs)-1].Elems())
	dy, x, w, mean, rstd, dx := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.out(0)
	dw, db := c.optOut(1, d), c.optOut(2, d)
	if c.op.Attrs.Bool("add") {
		copy(dx, c.in(5))
	}
	c.parallel(rows, func(r int) {
		sum, dot := 0.0, 0.0
		for j := range d {
			g := dy[r*d+j] * w[j]
			sum += g
			dot += g * (x[r*d+j] - mean[r]) * rstd[r]
		}
		sum, dot = sum/float64(d), dot/float64(d)
		for j := range d {
			dx[r*d+j] += rstd[r] * (dy[r*d+j]*w[j] - sum - (x[r*d+j]-mean[r])*rstd[r]*dot)
		}
	})
	c.parallel(d, func(j int) {
		for r := range rows {
			dw[j] += dy[r*d+j] * (x[r*d+j] - mean[r]) * rstd[r]
			db[j] += dy[r*d+j]
		}
	})
	return nil
}
