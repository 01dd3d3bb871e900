package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var rmsNormKinds = map[string]body{
	npu.RMSNorm:    runRMSNorm,
	npu.RMSNormBwd: runRMSNormBwd,
}

// rounded rounds x in place to the values that a tensor of type t can hold.
func (c *call) rounded(x []float64, t npu.DType) {
	if t == npu.F64 {
		return
	}
	c.chunks(len(x), func(lo, hi int) {
		b := make([]byte, (hi-lo)*t.Size())
		store(b, 0, x[lo:hi], t)
		load(x[lo:hi], b, 0, t)
	})
}

func runRMSNorm(c *call) error {
	a, xs := c.op.Attrs, c.op.In[0].Shape
	d := xs[len(xs)-1]
	rows := int(xs[:len(xs)-1].Elems())
	s, w, y, eps := c.in(0), c.in(1), c.out(0), a.Float("eps", 1e-5)
	rstd := c.optOut(1, rows)
	if a.Bool("add") {
		for i, v := range c.in(2) {
			s[i] += v
		}
		c.rounded(s, c.op.In[0].DType) // the next layer adds to the same values that are normalised
		copy(c.optOut(2, len(s)), s)
	}
	c.parallel(rows, func(r int) {
		sq := 0.0
		for _, v := range s[r*d:][:d] {
			sq += v * v
		}
		rstd[r] = 1 / math.Sqrt(sq/float64(d)+eps)
		for j, v := range s[r*d:][:d] {
			y[r*d+j] = v * rstd[r] * w[j]
		}
	})
	return nil
}

func runRMSNormBwd(c *call) error {
	xs := c.op.In[1].Shape
	d := xs[len(xs)-1]
	rows := int(xs[:len(xs)-1].Elems())
	dy, x, w, rstd, dx, dw := c.in(0), c.in(1), c.in(2), c.in(3), c.out(0), c.optOut(1, d)
	if c.op.Attrs.Bool("add") {
		copy(dx, c.in(4))
	}
	c.parallel(rows, func(r int) {
		dot := 0.0
		for j := range d {
			dot += dy[r*d+j] * w[j] * x[r*d+j]
		}
		k := rstd[r] * rstd[r] * dot / float64(d)
		for j := range d {
			dx[r*d+j] += rstd[r] * (dy[r*d+j]*w[j] - x[r*d+j]*k)
		}
	})
	c.parallel(d, func(j int) {
		for r := range rows {
			dw[j] += dy[r*d+j] * x[r*d+j] * rstd[r]
		}
	})
	return nil
}
