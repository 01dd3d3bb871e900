package kind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// checker collects the first thing that is wrong with a call, so that a shape rule reads as a list of demands.
type checker struct {
	a   npu.Attrs
	in  []npu.Desc
	err error
}

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) ok() bool { return c.err == nil }

// rank demands a number of dimensions.
func (c *checker) rank(i int, name string, ranks ...int) {
	if c.ok() && !slices.Contains(ranks, len(c.in[i].Shape)) {
		c.failf("%s has rank %d (shape %v), want %s", name, len(c.in[i].Shape), c.in[i].Shape, orList(ranks))
	}
}

func orList(ranks []int) string {
	s := make([]string, len(ranks))
	for i, r := range ranks {
		s[i] = fmt.Sprint(r)
	}
	return strings.Join(s, " or ")
}

// float demands a floating-point input.
func (c *checker) float(i int, name string) {
	if c.ok() && !c.in[i].DType.IsFloat() {
		c.failf("%s is %s, want a float", name, c.in[i].DType)
	}
}

// isInt demands 32-bit integers.
func (c *checker) isInt(i int, name string) {
	if c.ok() && c.in[i].DType != npu.I32 {
		c.failf("%s is %s, want i32", name, c.in[i].DType)
	}
}

// floats demands that all inputs from first on are floats of one type.
func (c *checker) floats(first int) {
	for i := first; c.ok() && i < len(c.in); i++ {
		c.float(i, fmt.Sprintf("input %d", i))
		if c.ok() && c.in[i].DType != c.in[first].DType {
			c.failf("input %d is %s, input %d is %s; both must be of one type\nhint: cast one of them", first, c.in[first].DType, i, c.in[i].DType)
		}
	}
}

// like demands that input i has the dtype and shape of input j.
func (c *checker) like(i, j int, name, other string) {
	if c.ok() && (c.in[i].DType != c.in[j].DType || !c.in[i].Shape.Equal(c.in[j].Shape)) {
		c.failf("%s is %s, want the %s of %s", name, c.in[i], c.in[j], other)
	}
}

// full demands a float32 (float64 in checks) input of a shape.
func (c *checker) full(i int, name string, shape ...int) {
	if !c.ok() {
		return
	}
	d := c.in[i]
	if (d.DType != npu.F32 && d.DType != npu.F64) || !d.Shape.Equal(shape) {
		c.failf("%s is %s, want %s", name, d, npu.D(npu.F32, shape...))
	}
}

// typed demands a dtype and shape.
func (c *checker) typed(i int, name string, t npu.DType, shape ...int) {
	if c.ok() && !c.in[i].Equal(npu.D(t, shape...)) {
		c.failf("%s is %s, want %s", name, c.in[i], npu.D(t, shape...))
	}
}

// between demands a float attribute in [lo, hi].
func (c *checker) between(key string, def, lo, hi float64) {
	if v := c.a.Float(key, def); c.ok() && !(v >= lo && v <= hi) {
		c.failf("attribute %s is %g, want %g … %g", key, v, lo, hi)
	}
}

// shape reads an attribute that is a shape.
func (c *checker) shape(key string) npu.Shape {
	s, ok := c.a[key].([]int)
	if c.ok() && !ok {
		c.failf("lacks the attribute %s", key)
	}
	for _, n := range s {
		if n < 1 {
			c.failf("attribute %s is %v; every dimension must be at least 1", key, s)
		}
	}
	return npu.Shape(s)
}

// fullType is the type of statistics next to activations of type t: float32, or float64 where everything is.
func fullType(t npu.DType) npu.DType {
	if t == npu.F64 {
		return t
	}
	return npu.F32
}

// outType is what attribute out asks for, or t.
func (c *checker) outType(t npu.DType) npu.DType {
	switch s := c.a.Str("out"); s {
	case "":
		return t
	case "f32":
		return fullType(t)
	default:
		c.failf("attribute out is %q, want f32 or nothing", s)
		return t
	}
}

// done ends a shape rule.
func (c *checker) done(out ...npu.Desc) ([]npu.Desc, error) {
	if c.err != nil {
		return nil, c.err
	}
	for i := range out {
		out[i].Shape = out[i].Shape.Clone()
		out[i].Layout = npu.Plain
	}
	return out, nil
}
