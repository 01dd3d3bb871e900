package ref

import "github.com/gotrain/gotrain/npu"

// The ops that move elements work on bytes, so that every dtype passes unchanged.
var moveKinds = map[string]spec{
	npu.Transpose: {checkTranspose, runTranspose},
	npu.Concat:    {checkConcat, runConcat},
	npu.Slice:     {checkSlice, runSlice},
	npu.Pad:       {checkPad, runPad},
	npu.Reshape:   {checkReshape, runReshape},
	npu.Convert:   {checkConvert, runConvert},
	npu.Fill:      {checkFill, runFill},
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

func checkTranspose(c *checker) {
	if !c.ins(1) {
		return
	}
	x, perm := c.in(0), c.op.Attrs.Ints("perm")
	seen, y := make([]bool, len(x)), npu.Shape{}
	for _, p := range perm {
		if p < 0 || p >= len(x) || seen[p] {
			break
		}
		seen[p] = true
		y = append(y, x[p])
	}
	if len(y) != len(x) || len(perm) != len(x) {
		c.fail("perm %v is not a permutation of the axes of %v", perm, x)
		return
	}
	if c.outShapes(y) {
		c.sameType()
	}
}

func runTranspose(c *call) error {
	own, st := strides(c.op.In[0].Shape), []int{}
	for _, p := range c.op.Attrs.Ints("perm") {
		st = append(st, own[p])
	}
	gather(c, 0, c.op.Out[0].Shape, st, 0)
	return nil
}

func checkConcat(c *checker) {
	if len(c.op.In) == 0 {
		c.fail("requires an input")
		return
	}
	axis, y := c.op.Attrs.Int("axis", 0), c.in(0).Clone()
	if axis < 0 || axis >= len(y) {
		c.fail("axis %d is out of range for %v", axis, y)
		return
	}
	y[axis] = 0
	for i, d := range c.op.In {
		if len(d.Shape) != len(y) || d.DType != c.op.In[0].DType {
			c.fail("input %d, %v, does not match input 0, %v", i, d, c.op.In[0])
			return
		}
		for j, n := range d.Shape {
			if j != axis && n != c.in(0)[j] {
				c.fail("input %d, %v, does not match input 0, %v", i, d, c.op.In[0])
				return
			}
		}
		y[axis] += d.Shape[axis]
	}
	if c.outShapes(y) {
		c.sameType()
	}
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

func checkSlice(c *checker) {
	if !c.ins(1) {
		return
	}
	x, begin, end := c.in(0), c.op.Attrs.Ints("begin"), c.op.Attrs.Ints("end")
	if len(begin) != len(x) || len(end) != len(x) {
		c.fail("begin %v and end %v must have one value per axis of %v", begin, end, x)
		return
	}
	y := npu.Shape{}
	for i, n := range x {
		if begin[i] < 0 || begin[i] > end[i] || end[i] > n {
			c.fail("begin %v, end %v are outside %v", begin, end, x)
			return
		}
		y = append(y, end[i]-begin[i])
	}
	if c.outShapes(y) {
		c.sameType()
	}
}

func runSlice(c *call) error {
	st, base := strides(c.op.In[0].Shape), 0
	for i, b := range c.op.Attrs.Ints("begin") {
		base += b * st[i]
	}
	gather(c, 0, c.op.Out[0].Shape, st, base)
	return nil
}

func checkPad(c *checker) {
	if !c.ins(1) {
		return
	}
	x, before, after := c.in(0), c.op.Attrs.Ints("before"), c.op.Attrs.Ints("after")
	if len(before) != len(x) || len(after) != len(x) {
		c.fail("before %v and after %v must have one value per axis of %v", before, after, x)
		return
	}
	y := x.Clone()
	for i := range y {
		if before[i] < 0 || after[i] < 0 {
			c.fail("negative padding: before %v, after %v", before, after)
			return
		}
		y[i] += before[i] + after[i]
	}
	if c.outShapes(y) {
		c.sameType()
	}
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

func checkReshape(c *checker) {
	if !c.ins(1) {
		return
	}
	if len(c.op.Out) != 1 || c.op.Out[0].Shape.Elems() != c.in(0).Elems() {
		c.fail("requires an output of %d elements", c.in(0).Elems())
		return
	}
	c.sameType()
}

func runReshape(c *call) error {
	if dst := c.rawOut(0); dst != nil {
		copy(dst, c.rawIn(0)[:c.op.In[0].PlainBytes()])
	}
	return nil
}

func checkConvert(c *checker) {
	if c.ins(1) && c.outShapes(c.in(0)) && (c.op.In[0].DType.Size() == 0 || c.op.Out[0].DType.Size() == 0) {
		c.fail("invalid dtype")
	}
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

func checkFill(c *checker) {
	if c.ins(0) && (len(c.op.Out) != 1 || c.op.Out[0].DType.Size() == 0) {
		c.fail("requires one output")
	}
}

func runFill(c *call) error {
	y, v := c.out(0), c.op.Attrs.Float("value", 0)
	for i := range y {
		y[i] = v
	}
	return nil
}
