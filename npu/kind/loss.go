package kind

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.OneHot, Attrs: "classes:i on:f off:f weights:w ignore_index:i dtype:s",
		In: "labels:keep", Out: "y:full rows:full,nil",
		Shape: inferOneHot, Complete: outType,
	})
	Register(&Kind{
		Name: npu.SoftCrossEntropy,
		In:   "logits target:full", Out: "loss:full count:full,nil lse:full,nil,saved",
		Shape: func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
			c := &checker{a: a, in: in}
			c.rank(0, "logits", 2)
			c.paired("logits")
			if !c.ok() {
				return nil, c.err
			}
			t := fullType(in[0].DType)
			return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]))
		},
	})
	Register(&Kind{
		Name: npu.SoftCrossEntropyBwd,
		In:   "logits target:full lse:full dloss:full", Out: "dlogits",
		InPlace: "dlogits=logits", Shape: func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
			c := &checker{a: a, in: in}
			c.rank(0, "logits", 2)
			c.paired("logits")
			if c.ok() {
				c.full(2, "lse", in[0].Shape[0])
				c.full(3, "dloss")
			}
			return c.first()
		},
	})
	Register(&Kind{
		Name: npu.BCE, Attrs: "weighted:b pos_weight:w",
		In: "logits target:full weight:full?weighted", Out: "loss:full count:full,nil",
		Shape: inferPairedLoss("logits"),
	})
	Register(&Kind{
		Name: npu.BCEBwd, Attrs: "weighted:b pos_weight:w",
		In: "logits target:full weight:full?weighted dloss:full", Out: "dlogits",
		InPlace: "dlogits=logits", Shape: inferPairedLossBwd("logits"),
	})
	Register(&Kind{
		Name: npu.MSE, Attrs: "weighted:b",
		In: "x target:full weight:full?weighted", Out: "loss:full count:full,nil",
		Shape: inferPairedLoss("x"),
	})
	Register(&Kind{
		Name: npu.MSEBwd, Attrs: "weighted:b",
		In: "x target:full weight:full?weighted dloss:full", Out: "dx",
		InPlace: "dx=x", Shape: inferPairedLossBwd("x"),
	})
}

func inferOneHot(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rank(0, "labels", 1)
	c.isInt(0, "labels")
	n, w := a.Int("classes", 0), a.Floats("weights")
	if c.ok() && n < 1 {
		c.failf("attribute classes is %d, want at least 1", n)
	}
	if c.ok() && w != nil && len(w) != n {
		c.failf("there are %d weights for %d classes", len(w), n)
	}
	c.weights("weights")
	t := npu.F32
	switch s := a.Str("dtype"); s { // what a device reads from the output
	case "", "f32":
	case "f64":
		t = npu.F64
	default:
		c.failf("y is %s, must be f32", s)
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.D(t, in[0].Shape[0], n), npu.D(t, in[0].Shape[0]))
}

// weights demands finite numbers that are not negative in an attribute.
func (c *checker) weights(key string) {
	for i, v := range c.a.Floats(key) {
		if c.ok() && !(v >= 0 && v <= math.MaxFloat32) {
			c.failf("number %d of %s is %g, want 0 or more", i, key, v)
		}
	}
}

// paired checks input 0, [N …] floats, and the target, float32 of its shape.
func (c *checker) paired(name string) {
	c.float(0, name)
	if c.ok() && len(c.in[0].Shape) == 0 {
		c.failf("%s is a scalar, want [N …]: a row for each sample", name)
	}
	if c.ok() {
		c.full(1, "target", c.in[0].Shape...)
	}
}

// pairedRows is paired, with what losses of single elements have besides. next is the input behind them.
func (c *checker) pairedRows(name string) (next int) {
	c.paired(name)
	next = 2
	if c.a.Bool("weighted") {
		if c.ok() {
			c.full(next, "weight", c.in[0].Shape[0])
		}
		next++
	}
	if p := c.a.Floats("pos_weight"); c.ok() && p != nil {
		last := 1
		if s := c.in[0].Shape; len(s) > 1 {
			last = s[len(s)-1]
		}
		if len(p) != 1 && len(p) != last {
			c.failf("pos_weight has %d numbers, want 1 or one for each of the %d places on the last axis of %s", len(p), last, name)
		}
	}
	c.weights("pos_weight")
	return next
}

// first ends the rule of a gradient, which is like input 0.
func (c *checker) first() ([]npu.Desc, error) {
	if !c.ok() {
		return nil, c.err
	}
	return c.done(c.in[0])
}

func inferPairedLoss(name string) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		c := &checker{a: a, in: in}
		c.pairedRows(name)
		t := fullType(in[0].DType)
		return c.done(npu.D(t), npu.D(t))
	}
}

func inferPairedLossBwd(name string) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		c := &checker{a: a, in: in}
		if at := c.pairedRows(name); c.ok() {
			c.full(at, "dloss")
		}
		return c.first()
	}
}
