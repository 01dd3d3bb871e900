package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var linearCEKinds = map[string]body{
	npu.LinearCrossEntropy:     runLinearCE,
	npu.LinearCrossEntropyBwd:  runLinearCEBwd,
	npu.LinearCrossEntropyGrad: runLinearCEGrad,
}

// projection holds the inputs of the three kinds. labels[r] is -1 if row r does not count.
type projection struct {
	n, d, v int
	x, w    []float64
	labels  []int
}

func (c *call) projection() (projection, error) {
	p := projection{n: c.op.In[0].Shape[0], d: c.op.In[0].Shape[1], v: c.op.In[1].Shape[0]}
	p.labels = make([]int, p.n)
	for r := range p.labels {
		p.labels[r] = -1
	}
	if err := c.labelsAmong(2, p.n, p.v, func(r, label int) { p.labels[r] = label }); err != nil {
		return p, err
	}
	p.x, p.w = c.in(0), c.in(1)
	return p, nil
}

func (p projection) logit(r, v int) float64 { return dot(p.x[r*p.d:][:p.d], p.w[v*p.d:][:p.d]) }

// loss fills lse and returns the sum of the losses and the number of valid rows. Each goroutine holds one row of logits at a time.
func (c *call) loss(p projection, lse []float64) (sum, count float64) {
	each := make([]float64, p.n)
	c.parallel(p.n, func(r int) {
		row := make([]float64, p.v)
		for v := range row {
			row[v] = p.logit(r, v)
		}
		lse[r] = logSumExp(row)
		if l := p.labels[r]; l >= 0 {
			each[r] = lse[r] - row[l]
		}
	})
	for r, l := range each {
		if p.labels[r] >= 0 {
			sum, count = sum+l, count+1
		}
	}
	return sum, count
}

// gradients fills dx and dw. The logits are computed once for each: by rows for dx, by vocabulary entries for dw, so that no sum is split.
func (c *call) gradients(p projection, lse []float64, dloss float64, dx, dw []float64) {
	each := func(r, v int) float64 {
		g := math.Exp(p.logit(r, v) - lse[r])
		if v == p.labels[r] {
			g--
		}
		return g * dloss
	}
	c.parallel(p.n, func(r int) {
		if p.labels[r] < 0 {
			return
		}
		for v := range p.v {
			g := each(r, v)
			for j, w := range p.w[v*p.d:][:p.d] {
				dx[r*p.d+j] += g * w
			}
		}
	})
	c.parallel(p.v, func(v int) {
		for r := range p.n {
			if p.labels[r] < 0 {
				continue
			}
			g := each(r, v)
			for j, x := range p.x[r*p.d:][:p.d] {
				dw[v*p.d+j] += g * x
			}
		}
	})
}

func runLinearCE(c *call) error {
	p, err := c.projection()
	if err != nil {
		return err
	}
	sum, count := c.loss(p, c.optOut(2, p.n))
	c.out(0)[0], c.optOut(1, 1)[0] = sum, count
	return nil
}

func runLinearCEBwd(c *call) error {
	p, err := c.projection()
	if err != nil {
		return err
	}
	c.gradients(p, c.in(3), c.in(4)[0], c.out(0), c.optOut(1, len(p.w)))
	return nil
}

func runLinearCEGrad(c *call) error {
	p, err := c.projection()
	if err != nil {
		return err
	}
	dloss, lse := c.in(3)[0], c.optOut(2, p.n)
	sum, count := c.loss(p, lse)
	c.out(0)[0], c.optOut(1, 1)[0] = sum, count
	c.gradients(p, lse, dloss, c.optOut(3, len(p.x)), c.optOut(4, len(p.w)))
	return nil
}
