package ref

import "github.com/gotrain/gotrain/npu"

// The ops that move elements work on bytes, so that every dtype passes unchanged.
var moveKinds = map[string]body{
	npu.Transpose: runTranspose,
	npu.Concat:    runConcat,
	npu.Slice:     runSlice,
	npu.Pad:       runPad,
	npu.Reshape:   runReshape,
	npu.Convert:   runConvert,
	npu.Fill:      runFill,
}

// gather fills output 0, in the order of shape s, from input i, read with the strides from element base on.
func gather(c *call, i int, s npu.Shape, st []int, base int) {
	dst, src := c.rawOut(0), c.rawIn(i)
	if dst == nil {
		return
	}
	size := c.op.Out[0].DType.Size()
	c.chunks(int(s.Elems()), func(lo, hi int) {
		for e := lo; e < hi; e++ {
			from := (base + offset(e, s, st)) * size
			copy(dst[e*size:(e+1)*size], src[from:from+size])
		}
	})
}

func runTranspose(c *call) error {
	own, st := strides(c.op.In[0].Shape), []int{}
	for _, p := range c.op.Attrs.Ints("perm") {
		st = append(st, own[p])
	}
	gather(c, 0, c.op.Out[0].Shape, st, 0)
	return nil
}

func runConcat(c *call) error {
	axis, ys := c.op.Attrs.Int("axis", 0), c.op.Out[0].Shape
	dst := c.rawOut(0)
	if dst == nil {
		return nil
	}
	inner := int(npu.Shape(ys[axis+1:]).Elems()) * c.op.Out[0].DType.Size()
	at := 0
	for i, d := range c.op.In {
		run := d.Shape[axis] * inner
		for o := range int(npu.Shape(ys[:axis]).Elems()) {
			copy(dst[o*ys[axis]*inner+at:][:run], c.rawIn(i)[o*run:])
		}
		at += run
	}
	return nil
}

func runSlice(c *call) error {
	st, base := strides(c.op.In[0].Shape), 0
	for i, b := range c.op.Attrs.Ints("begin") {
		base += b * st[i]
	}
	gather(c, 0, c.op.Out[0].Shape, st, base)
	return nil
}

func runPad(c *call) error {
	dst, src := c.rawOut(0), c.rawIn(0)
	if dst == nil {
		return nil
	}
	xs, st, base := c.op.In[0].Shape, strides(c.op.Out[0].Shape), 0
	for i, b := range c.op.Attrs.Ints("before") {
		base += b * st[i]
	}
	size := c.op.Out[0].DType.Size()
	clear(dst[:c.op.Out[0].PlainBytes()])
	for e := range int(xs.Elems()) {
		copy(dst[(base+offset(e, xs, st))*size:], src[e*size:(e+1)*size])
	}
	return nil
}

func runReshape(c *call) error {
	if dst := c.rawOut(0); dst != nil {
		copy(dst, c.rawIn(0)[:c.op.In[0].PlainBytes()])
	}
	return nil
}

func runConvert(c *call) error {
	from, to := c.op.In[0].DType, c.op.Out[0].DType
	switch {
	case from == to:
		return runReshape(c)
	case !from.IsFloat() && !to.IsFloat(): // not through float64, which has only 53 bits
		dst, src := c.rawOut(0), c.rawIn(0)
		if dst == nil {
			return nil
		}
		lo, hi := intRange(to)
		for i := range int(c.op.In[0].Shape.Elems()) {
			storeInt(dst, i, min(max(loadInt(src, i, from), lo), hi), to)
		}
		return nil
	}
	copy(c.out(0), c.in(0))
	return nil
}

func runFill(c *call) error {
	y, v := c.out(0), c.op.Attrs.Float("value", 0)
	for i := range y {
		y[i] = v
	}
	return nil
}
