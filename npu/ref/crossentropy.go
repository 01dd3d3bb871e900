package ref

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

var crossEntropyKinds = map[string]body{
	npu.CrossEntropy:    runCrossEntropy,
	npu.CrossEntropyBwd: runCrossEntropyBwd,
	npu.TopK:            runTopK,
}

func errIndex(at, index, limit int) error {
	return fmt.Errorf("element %d: index %d outside 0…%d", at, index, limit-1)
}

// eachLabel calls fn for each row of logits that counts, in order.
func (c *call) eachLabel(fn func(row, label int)) error {
	s := c.op.In[0].Shape
	return c.labelsAmong(1, s[0], s[1], fn)
}

// labelsAmong calls fn for each of n rows that counts, in order, with its label from input i, which must be below classes.
func (c *call) labelsAmong(i, n, classes int, fn func(row, label int)) error {
	raw, ignore := c.rawIn(i), c.op.Attrs.Int("ignore_index", -100)
	for r := range n {
		label := int(loadInt(raw, r, npu.I32))
		if label == ignore {
			continue
		}
		if label < 0 || label >= classes {
			return fmt.Errorf(
				"row %d: label %d outside 0…%d\nhint: the data set has more classes than the model, or the label should be ignore_index (%d)",
				r,
				label,
				classes-1,
				ignore,
			)
		}
		fn(r, label)
	}
	return nil
}

func runCrossEntropy(c *call) error {
	s, eps := c.op.In[0].Shape, c.op.Attrs.Float("smoothing", 0)
	x, loss, n := c.in(0), c.out(0), s[1]
	count, lse := c.optOut(1, 1), c.optOut(2, s[0])
	c.parallel(s[0], func(r int) { lse[r] = logSumExp(x[r*n:][:n]) })
	return c.eachLabel(func(r, label int) {
		row := x[r*n:][:n]
		l := (1 - eps) * (lse[r] - row[label])
		if eps > 0 {
			for _, v := range row {
				l += eps / float64(n) * (lse[r] - v)
			}
		}
		loss[0] += l
		count[0]++
	})
}

func runCrossEntropyBwd(c *call) error {
	n, eps := c.op.In[0].Shape[1], c.op.Attrs.Float("smoothing", 0)
	x, lse, dloss, dx := c.in(0), c.in(2), c.in(3)[0], c.out(0)
	return c.eachLabel(func(r, label int) {
		for j, v := range x[r*n:][:n] {
			g := math.Exp(v-lse[r]) - eps/float64(n)
			if j == label {
				g -= 1 - eps
			}
			dx[r*n+j] = g * dloss
		}
	})
}

func runTopK(c *call) error {
	n, k := c.op.In[0].Shape[1], c.op.Attrs.Int("k", 1)
	x, correct := c.in(0), c.out(0)
	return c.eachLabel(func(r, label int) {
		row := x[r*n:][:n]
		mine, before := row[label], 0
		for j, v := range row {
			if v > mine || v == mine && j < label {
				before++
			}
		}
		if before < k && mine == mine {
			correct[0]++
		}
	})
}
