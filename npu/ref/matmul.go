package ref

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

var matmulKinds = map[string]spec{npu.MatMul: {checkMatMul, runMatMul}}

func checkMatMul(c *checker) {
	bias := c.op.Attrs.Bool("bias")
	if !c.ins(2+toInt01(bias)) || !c.floats() {
		return
	}
	a, b := c.in(0), c.in(1)
	r := len(a)
	if r < 2 || len(b) != r || !slices.Equal(a[:r-2], b[:r-2]) {
		c.fail("a %v and b %v must have equal leading dimensions", a, b)
		return
	}
	m, k, k2, n := matDims(c.op)
	if k != k2 {
		c.fail("inner dimensions %d and %d differ", k, k2)
		return
	}
	if bias && !c.shape(2, n) {
		return
	}
	c.outs(append(a[:r-2].Clone(), m, n))
}

func matDims(op npu.Op) (m, ka, kb, n int) {
	a, b := op.In[0].Shape, op.In[1].Shape
	m, ka = a[len(a)-2], a[len(a)-1]
	kb, n = b[len(b)-2], b[len(b)-1]
	if op.Attrs.Bool("ta") {
		m, ka = ka, m
	}
	if op.Attrs.Bool("tb") {
		kb, n = n, kb
	}
	return m, ka, kb, n
}

func runMatMul(c *call) error {
	m, k, _, n := matDims(c.op)
	a, b, y := c.in(0), c.in(1), c.out(0)
	ta, tb := c.op.Attrs.Bool("ta"), c.op.Attrs.Bool("tb")
	var bias []float64
	if c.op.Attrs.Bool("bias") {
		bias = c.in(2)
	}
	batch := int(npu.Shape(c.op.In[0].Shape[:len(c.op.In[0].Shape)-2]).Elems())
	c.parallel(batch*m, func(i int) {
		g, r := i/m, i%m
		row, ag, bg := y[i*n:][:n], a[g*m*k:][:m*k], b[g*k*n:][:k*n]
		for p := range k {
			av := 0.0
			if ta {
				av = ag[p*m+r]
			} else {
				av = ag[r*k+p]
			}
			if tb {
				for j := range row {
					row[j] += av * bg[j*k+p]
				}
			} else {
				axpyStrided(row, av, bg[p*n:], 1)
			}
		}
		for j := range bias {
			row[j] += bias[j]
		}
	})
	return nil
}
