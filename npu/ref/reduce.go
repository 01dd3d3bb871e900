package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var reduceKinds = map[string]body{
	npu.Reduce:      runReduce,
	npu.BroadcastTo: runBroadcastTo,
}

func runReduce(c *call) error {
	x, y, fn := c.in(0), c.out(0), c.op.Attrs.Str("fn")
	xs := c.op.In[0].Shape
	kept := xs.Clone() // y's shape with ones
	for _, a := range c.op.Attrs.Ints("axes") {
		kept[a] = 1
	}
	st := broadcastStrides(kept, xs)
	for _, a := range c.op.Attrs.Ints("axes") {
		st[a] = 0 // even if its extent is 1
	}
	if fn == "max" {
		for i := range y {
			y[i] = math.Inf(-1)
		}
	}
	for i, v := range x {
		o := offset(i, xs, st)
		if fn == "max" {
			y[o] = math.Max(y[o], v)
		} else {
			y[o] += v
		}
	}
	if fn == "mean" {
		n := float64(len(x)) / float64(len(y))
		for i := range y {
			y[i] /= n
		}
	}
	return nil
}

func runBroadcastTo(c *call) error {
	ys := c.op.Out[0].Shape
	gather(c, 0, ys, broadcastStrides(c.op.In[0].Shape, ys), 0)
	return nil
}
