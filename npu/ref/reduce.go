package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var reduceKinds = map[string]spec{
	npu.Reduce:      {checkReduce, runReduce},
	npu.BroadcastTo: {checkBroadcastTo, runBroadcastTo},
}

func reduceFn(fn string) bool { return fn == "sum" || fn == "mean" || fn == "max" }

func checkReduce(c *checker) {
	if fn := c.op.Attrs.Str("fn"); !reduceFn(fn) {
		c.fail("unknown function %q", fn)
		return
	}
	if !c.ins(1) || !c.floats() {
		return
	}
	x, last := c.in(0), -1
	gone := make([]bool, len(x))
	for _, a := range c.op.Attrs.Ints("axes") {
		if a <= last || a >= len(x) {
			c.fail("axes %v of %v must be sorted and in range", c.op.Attrs.Ints("axes"), x)
			return
		}
		gone[a], last = true, a
	}
	y := npu.Shape{}
	for i, n := range x {
		if !gone[i] {
			y = append(y, n)
		} else if c.op.Attrs.Bool("keep") {
			y = append(y, 1)
		}
	}
	c.outs(y)
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

func checkBroadcastTo(c *checker) {
	if !c.ins(1) {
		return
	}
	to := npu.Shape(c.op.Attrs.Ints("shape"))
	if y, ok := broadcast(c.in(0), to); !ok || !y.Equal(to) {
		c.fail("%v does not broadcast to %v", c.in(0), to)
		return
	}
	if c.outShapes(to) {
		c.sameType()
	}
}

func runBroadcastTo(c *call) error {
	ys := c.op.Out[0].Shape
	gather(c, 0, ys, broadcastStrides(c.op.In[0].Shape, ys), 0)
	return nil
}
