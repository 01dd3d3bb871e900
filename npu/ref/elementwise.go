package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var elementKinds = map[string]body{
	npu.Relu:    runRelu,
	npu.ReluBwd: runReluBwd,
	npu.Unary:   runUnary,
	npu.Binary:  runBinary,
}

func runRelu(c *call) error {
	y, x := c.out(0), c.in(0)
	for i, v := range x {
		y[i] = reluOf(v)
	}
	return nil
}

func runReluBwd(c *call) error {
	dx, dy, y := c.out(0), c.in(0), c.in(1)
	for i, v := range y {
		if v > 0 {
			dx[i] = dy[i]
		}
	}
	return nil
}

var unaryFns = map[string]func(x, alpha, beta float64) float64{
	"neg":     func(x, _, _ float64) float64 { return -x },
	"exp":     func(x, _, _ float64) float64 { return math.Exp(x) },
	"log":     func(x, _, _ float64) float64 { return math.Log(x) },
	"sqrt":    func(x, _, _ float64) float64 { return math.Sqrt(x) },
	"rsqrt":   func(x, _, _ float64) float64 { return 1 / math.Sqrt(x) },
	"square":  func(x, _, _ float64) float64 { return x * x },
	"abs":     func(x, _, _ float64) float64 { return math.Abs(x) },
	"recip":   func(x, _, _ float64) float64 { return 1 / x },
	"tanh":    func(x, _, _ float64) float64 { return math.Tanh(x) },
	"sigmoid": func(x, _, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"silu":    func(x, _, _ float64) float64 { return x / (1 + math.Exp(-x)) },
	"sign": func(x, _, _ float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x // 0 and NaN
	},
	"affine": func(x, alpha, beta float64) float64 { return alpha*x + beta },
}

func runUnary(c *call) error {
	y, x := c.out(0), c.in(0)
	fn, alpha, beta := unaryFns[c.op.Attrs.Str("fn")], c.op.Attrs.Float("alpha", 1), c.op.Attrs.Float("beta", 0)
	c.chunks(len(x), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = fn(x[i], alpha, beta)
		}
	})
	return nil
}

var binaryFns = map[string]func(a, b float64) float64{
	"add": func(a, b float64) float64 { return a + b },
	"sub": func(a, b float64) float64 { return a - b },
	"mul": func(a, b float64) float64 { return a * b },
	"div": func(a, b float64) float64 { return a / b },
	"max": math.Max, // a NaN on either side wins
	"min": math.Min,
	"gt":  func(a, b float64) float64 { return float64(toInt01(a > b)) },
	"ge":  func(a, b float64) float64 { return float64(toInt01(a >= b)) },
	"eq":  func(a, b float64) float64 { return float64(toInt01(a == b)) },
}

func runBinary(c *call) error {
	a, b, y := c.in(0), c.in(1), c.out(0)
	ys := c.op.Out[0].Shape
	fn, relu := binaryFns[c.op.Attrs.Str("fn")], c.op.Attrs.Bool("relu")
	ia, ib := broadcastStrides(c.op.In[0].Shape, ys), broadcastStrides(c.op.In[1].Shape, ys)
	same := len(a) == len(y) && len(b) == len(y) // offset is slow
	c.chunks(len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			oa, ob := i, i
			if !same {
				oa, ob = offset(i, ys, ia), offset(i, ys, ib)
			}
			v := fn(a[oa], b[ob])
			if relu {
				v = reluOf(v)
			}
			y[i] = v
		}
	})
	return nil
}

// strides returns those of a plain tensor, in elements.
func strides(s npu.Shape) []int {
	st := make([]int, len(s))
	for i, n := len(s)-1, 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// broadcastStrides returns the strides to read x in the order of y: 0 along repeated axes.
func broadcastStrides(x, y npu.Shape) []int {
	st, r := make([]int, len(y)), strides(x)
	for i, n := range x {
		if j := len(y) - len(x) + i; n == y[j] {
			st[j] = r[i]
		}
	}
	return st
}

// offset is the position of element i (in the order of shape s) under the strides.
func offset(i int, s npu.Shape, st []int) int {
	o := 0
	for d := len(s) - 1; d >= 0; d-- {
		o += i % s[d] * st[d]
		i /= s[d]
	}
	return o
}
