package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var softmaxKinds = map[string]body{
	npu.Softmax:       eachRow1(softmaxRow),
	npu.LogSoftmax:    eachRow1(logSoftmaxRow),
	npu.SoftmaxBwd:    eachRow2(softmaxBwdRow),
	npu.LogSoftmaxBwd: eachRow2(logSoftmaxBwdRow),
}

func rowsOf(s npu.Shape) (rows, n int) {
	n = s[len(s)-1]
	return int(npu.Shape(s[:len(s)-1]).Elems()), n
}

func eachRow1(fn func(y, x []float64)) func(c *call) error {
	return func(c *call) error {
		x, y := c.in(0), c.out(0)
		rows, n := rowsOf(c.op.In[0].Shape)
		c.parallel(rows, func(r int) { fn(y[r*n:][:n], x[r*n:][:n]) })
		return nil
	}
}

func eachRow2(fn func(dx, dy, y []float64)) func(c *call) error {
	return func(c *call) error {
		dy, y, dx := c.in(0), c.in(1), c.out(0)
		rows, n := rowsOf(c.op.In[0].Shape)
		c.parallel(rows, func(r int) { fn(dx[r*n:][:n], dy[r*n:][:n], y[r*n:][:n]) })
		return nil
	}
}

// logSumExp shifts by the maximum so that nothing overflows.
func logSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, v)
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

func softmaxRow(y, x []float64) {
	lse := logSumExp(x)
	for i, v := range x {
		y[i] = math.Exp(v - lse)
	}
}

func logSoftmaxRow(y, x []float64) {
	lse := logSumExp(x)
	for i, v := range x {
		y[i] = v - lse
	}
}

func softmaxBwdRow(dx, dy, y []float64) {
	dot := 0.0
	for i := range y {
		dot += dy[i] * y[i]
	}
	for i := range y {
		dx[i] = y[i] * (dy[i] - dot)
	}
}

func logSoftmaxBwdRow(dx, dy, y []float64) {
	sum := 0.0
	for _, g := range dy {
		sum += g
	}
	for i := range y {
		dx[i] = dy[i] - math.Exp(y[i])*sum
	}
}
