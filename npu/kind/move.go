package kind

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.Transpose, Attrs: "perm:n",
		In: "x", Out: "y",
		Shape: inferTranspose, Follows: true, Cheap: true,
	})
	Register(&Kind{
		Name: npu.Concat, Attrs: "axis:i",
		In: "x…", Out: "y",
		Shape: inferConcat, Follows: true,
	})
	Register(&Kind{
		Name: npu.Slice, Attrs: "begin:n end:n",
		In: "x", Out: "y",
		Shape: inferSlice, Follows: true,
	})
	Register(&Kind{
		Name: npu.Pad, Attrs: "before:n after:n",
		In: "x", Out: "y",
		Shape: inferPad, Follows: true,
	})
	Register(&Kind{
		Name: npu.Reshape, Attrs: "shape:n stop:b",
		In: "x", Out: "y",
		Shape: inferReshape, Complete: outShape, Follows: true, Plain: true,
	})
	Register(&Kind{
		Name: npu.Convert, Attrs: "dtype:s",
		In: "x:keep", Out: "y:keep",
		Shape: inferConvert, Complete: outType, Cheap: true,
	})
	Register(&Kind{
		Name: npu.Fill, Attrs: "value:f shape:n dtype:s", Out: "y:keep",
		Shape: inferFill, Complete: outDesc,
	})
}

func inferTranspose(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	if !c.ok() {
		return nil, c.err
	}
	x, perm := in[0].Shape, a.Ints("perm")
	y := npu.Shape{}
	for _, p := range perm {
		if p >= 0 && p < len(x) {
			y = append(y, x[p])
		}
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(perm))); len(perm) != len(x) || len(y) != len(x) || len(sorted) != len(x) {
		c.failf("perm %v is not a permutation of the %d axes of x %v", perm, len(x), x)
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func inferConcat(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	axis, y := a.Int("axis", 0), in[0].Shape.Clone()
	if axis < 0 || axis >= len(y) {
		c.failf("axis %d is outside the rank of %v", axis, y)
		return nil, c.err
	}
	for i, d := range in[1:] {
		same := d.DType == in[0].DType && len(d.Shape) == len(y)
		for j := range y {
			same = same && (j == axis || d.Shape[j] == y[j])
		}
		if !same {
			c.failf("input %d, %s, differs from input 0, %s, in more than axis %d", i+1, d, in[0], axis)
			return nil, c.err
		}
		y[axis] += d.Shape[axis]
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func inferSlice(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	if !c.ok() {
		return nil, c.err
	}
	x, begin, end := in[0].Shape, a.Ints("begin"), a.Ints("end")
	if len(begin) != len(x) || len(end) != len(x) {
		c.failf("begin %v and end %v want one value for each axis of x %v", begin, end, x)
		return nil, c.err
	}
	y := npu.Shape{}
	for i, n := range x {
		if begin[i] < 0 || begin[i] >= end[i] || end[i] > n {
			c.failf("axis %d: %d … %d is empty or outside x %v", i, begin[i], end[i], x)
		}
		y = append(y, end[i]-begin[i])
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func inferPad(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	if !c.ok() {
		return nil, c.err
	}
	x, before, after := in[0].Shape, a.Ints("before"), a.Ints("after")
	if len(before) != len(x) || len(after) != len(x) {
		c.failf("before %v and after %v want one value for each axis of x %v", before, after, x)
		return nil, c.err
	}
	y := x.Clone()
	for i := range y {
		if before[i] < 0 || after[i] < 0 {
			c.failf("axis %d: padding %d and %d must not be negative", i, before[i], after[i])
		}
		y[i] += before[i] + after[i]
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func inferReshape(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	to := c.shape("shape")
	if c.ok() && to.Elems() != in[0].Shape.Elems() {
		c.failf("x %v has %d elements, %v has %d", in[0].Shape, in[0].Shape.Elems(), to, to.Elems())
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: to, DType: in[0].DType})
}

func inferConvert(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	to, err := npu.ParseDType(a.Str("dtype"))
	if err != nil {
		c.failf("attribute dtype: %w", err)
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0].As(to))
}

func inferFill(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	s := c.shape("shape")
	t, err := npu.ParseDType(a.Str("dtype"))
	if err != nil {
		c.failf("attribute dtype: %w", err)
	}
	return c.done(npu.Desc{Shape: s, DType: t})
}
