package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var lossKinds = map[string]body{
	npu.OneHot:           runOneHot,
	npu.SoftCrossEntropy: runSoftCrossEntropy, npu.SoftCrossEntropyBwd: runSoftCrossEntropyBwd,
	npu.BCE: runBCE, npu.BCEBwd: runBCEBwd,
	npu.MSE: runMSE, npu.MSEBwd: runMSEBwd,
}

func runOneHot(c *call) error {
	n, classes, a := c.op.In[0].Shape[0], c.op.Attrs.Int("classes", 0), c.op.Attrs
	on, off, weights := a.Float("on", 1), a.Float("off", 0), a.Floats("weights")
	weight := func(j int) float64 {
		if weights == nil {
			return 1
		}
		return weights[j]
	}
	y, rows := c.out(0), c.optOut(1, n)
	return c.labelsAmong(0, n, classes, func(r, label int) {
		for j := range classes {
			y[r*classes+j] = off * weight(j)
		}
		y[r*classes+label] = on * weight(label)
		rows[r] = weight(label)
	})
}

func runSoftCrossEntropy(c *call) error {
	s := c.op.In[0].Shape
	x, t, loss, n := c.in(0), c.in(1), c.out(0), s[1]
	count, lse := c.optOut(1, 1), c.optOut(2, s[0])
	c.parallel(s[0], func(r int) { lse[r] = logSumExp(x[r*n:][:n]) })
	for r := range s[0] {
		mass := 0.0
		for j, p := range t[r*n:][:n] {
			if mass += p; p != 0 {
				loss[0] += p * (lse[r] - x[r*n+j])
			}
		}
		if mass != 0 {
			count[0]++
		}
	}
	return nil
}

func runSoftCrossEntropyBwd(c *call) error {
	n := c.op.In[0].Shape[1]
	x, t, lse, dloss, dx := c.in(0), c.in(1), c.in(2), c.in(3)[0], c.out(0)
	for r := range lse {
		row, mass := t[r*n:][:n], 0.0
		for _, p := range row {
			mass += p
		}
		for j, p := range row {
			if mass != 0 || p != 0 {
				dx[r*n+j] = (mass*math.Exp(x[r*n+j]-lse[r]) - p) * dloss
			}
		}
	}
	return nil
}

// eachRow calls fn with the weight of each row that has one other than 0, and the places of its elements. It returns the sum of the weights.
func (c *call) eachRow(fn func(weight float64, lo, hi int)) (sum float64) {
	s := c.op.In[0].Shape
	n, weights := s[0], []float64(nil)
	if c.op.Attrs.Bool("weighted") {
		weights = c.in(2)
	}
	inner := 0
	if n > 0 {
		inner = int(s.Elems()) / n
	}
	for r := range n {
		w := 1.0
		if weights != nil {
			w = weights[r]
		}
		if sum += w; w != 0 {
			fn(w, r*inner, (r+1)*inner)
		}
	}
	return sum
}

// posWeight gives the weight of positive targets, by the place of an element.
func (c *call) posWeight() func(i int) float64 {
	p := c.op.Attrs.Floats("pos_weight")
	return func(i int) float64 {
		if len(p) == 0 {
			return 1
		}
		return p[i%len(p)]
	}
}

// softplus is log(1 + e^x).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func runBCE(c *call) error {
	x, t, loss, pos := c.in(0), c.in(1), c.out(0), c.posWeight()
	count := c.eachRow(func(w float64, lo, hi int) {
		for i := lo; i < hi; i++ {
			loss[0] += w * (pos(i)*t[i]*softplus(-x[i]) + (1-t[i])*softplus(x[i]))
		}
	})
	c.optOut(1, 1)[0] = count
	return nil
}

func runBCEBwd(c *call) error {
	x, t, dx, pos := c.in(0), c.in(1), c.out(0), c.posWeight()
	dloss := c.in(len(c.op.In) - 1)[0]
	c.eachRow(func(w float64, lo, hi int) {
		for i := lo; i < hi; i++ {
			p := pos(i) * t[i]
			dx[i] = w * dloss * ((p+1-t[i])/(1+math.Exp(-x[i])) - p)
		}
	})
	return nil
}

func runMSE(c *call) error {
	x, t, loss := c.in(0), c.in(1), c.out(0)
	count := c.eachRow(func(w float64, lo, hi int) {
		for i := lo; i < hi; i++ {
			d := x[i] - t[i]
			loss[0] += w * d * d
		}
	})
	c.optOut(1, 1)[0] = count
	return nil
}

func runMSEBwd(c *call) error {
	x, t, dx, dloss := c.in(0), c.in(1), c.out(0), c.in(len(c.op.In) - 1)[0]
	c.eachRow(func(w float64, lo, hi int) {
		for i := lo; i < hi; i++ {
			dx[i] = 2 * w * dloss * (x[i] - t[i])
		}
	})
	return nil
}
