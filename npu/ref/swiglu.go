package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var swiGLUKinds = map[string]body{
	npu.SwiGLU:    runSwiGLU,
	npu.SwiGLUBwd: runSwiGLUBwd,
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func runSwiGLU(c *call) error {
	gate, up, y := c.in(0), c.in(1), c.out(0)
	c.chunks(len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = gate[i] * logistic(gate[i]) * up[i]
		}
	})
	return nil
}

func runSwiGLUBwd(c *call) error {
	dy, gate, up, dgate := c.in(0), c.in(1), c.in(2), c.out(0)
	dup := c.optOut(1, len(dy))
	c.chunks(len(dy), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s := logistic(gate[i])
			dgate[i] = dy[i] * up[i] * s * (1 + gate[i]*(1-s))
			dup[i] = dy[i] * gate[i] * s
		}
	})
	return nil
}
