package ref

import (
	"github.com/gotrain/gotrain/npu"
)

var matmulKinds = map[string]body{npu.MatMul: runMatMul}

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
