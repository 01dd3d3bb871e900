package ref

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// checker holds the first error found in an op. A rule returns early where it would otherwise index out of range.
type checker struct {
	op  npu.Op
	err error
}

func (c *checker) fail(format string, args ...any) bool {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return false
}

// ins requires n inputs.
func (c *checker) ins(n int) bool {
	if len(c.op.In) != n {
		return c.fail("requires %d inputs, has %d", n, len(c.op.In))
	}
	return true
}

func (c *checker) in(i int) npu.Shape { return c.op.In[i].Shape }

// rank requires input i to have n dimensions.
func (c *checker) rank(i, n int) bool {
	if len(c.in(i)) != n {
		return c.fail("input %d has %d dimensions, must have %d", i, len(c.in(i)), n)
	}
	return true
}

// shape requires input i to have the shape.
func (c *checker) shape(i int, s ...int) bool {
	if !c.in(i).Equal(s) {
		return c.fail("input %d is %v, must be %v", i, c.in(i), s)
	}
	return true
}

// floats requires these inputs, or all without arguments, to have a floating-point type.
func (c *checker) floats(idx ...int) bool {
	if len(idx) == 0 {
		for i := range c.op.In {
			idx = append(idx, i)
		}
	}
	for _, i := range idx {
		if !c.op.In[i].DType.IsFloat() {
			return c.fail("input %d is %v, must have a float type", i, c.op.In[i].DType)
		}
	}
	return true
}

// isType requires input i to have one of the types.
func (c *checker) isType(i int, types ...npu.DType) bool {
	for _, t := range types {
		if c.op.In[i].DType == t {
			return true
		}
	}
	return c.fail("input %d is %v, must be one of %v", i, c.op.In[i].DType, types)
}

// outs requires float outputs of these shapes; at least the first must be present.
func (c *checker) outs(shapes ...npu.Shape) bool {
	return c.outShapes(shapes...) && c.outFloats()
}

func (c *checker) outShapes(shapes ...npu.Shape) bool {
	if len(c.op.Out) < 1 || len(c.op.Out) > len(shapes) {
		return c.fail("requires %d outputs, has %d", len(shapes), len(c.op.Out))
	}
	for i, d := range c.op.Out {
		if !d.Shape.Equal(shapes[i]) {
			return c.fail("output %d is %v, must be %v", i, d.Shape, shapes[i])
		}
	}
	return true
}

func (c *checker) outFloats() bool {
	for i, d := range c.op.Out {
		if !d.DType.IsFloat() {
			return c.fail("output %d is %v, must have a float type", i, d.DType)
		}
	}
	return true
}

// sameType requires output 0 to have the type of input 0.
func (c *checker) sameType() bool {
	if a, b := c.op.In[0].DType, c.op.Out[0].DType; a != b || a.Size() == 0 {
		return c.fail("output is %v, must have the type of the input, %v", b, a)
	}
	return true
}

// ints returns an []int attribute with as many values as def, each at least low, or def if absent.
func (c *checker) ints(key string, def []int, low int) []int {
	v := attrInts(c.op.Attrs, key, def)
	if _, present := c.op.Attrs[key]; present && c.op.Attrs.Ints(key) == nil && len(def) > 0 {
		c.fail("attribute %s is %v, must have %d ints", key, c.op.Attrs[key], len(def))
		return def
	}
	if len(v) != len(def) {
		c.fail("attribute %s is %v, must have %d ints", key, v, len(def))
		return def
	}
	for _, x := range v {
		if x < low {
			c.fail("attribute %s is %v, must have values of at least %d", key, v, low)
			return def
		}
	}
	return v
}

func attrInts(a npu.Attrs, key string, def []int) []int {
	if v := a.Ints(key); v != nil {
		return v
	}
	return def
}

// perChannel requires inputs lo…hi-1 to be vectors of ch elements.
func (c *checker) perChannel(ch, lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if !c.shape(i, ch) {
			return false
		}
	}
	return true
}

// unitFloat requires a float attribute in [0,1).
func (c *checker) unitFloat(key string) bool {
	if v := c.op.Attrs.Float(key, 0); !(v >= 0 && v < 1) {
		return c.fail("attribute %s is %v, but 0 <= %s < 1 is required", key, v, key)
	}
	return true
}
