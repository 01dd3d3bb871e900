package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{Name: npu.Transpose, Infer: inferTranspose, Grad: gradTranspose, FLOPs: noFLOPs})
	Register(&Kind{Name: npu.Concat, Infer: inferConcat, Grad: gradConcat, FLOPs: noFLOPs})
	Register(&Kind{Name: npu.Slice, Infer: inferSlice, Grad: gradSlice, FLOPs: noFLOPs})
	Register(&Kind{Name: npu.Pad, Infer: inferPad, Grad: gradPad, FLOPs: noFLOPs})
	Register(&Kind{
		Name: npu.Reshape, Infer: inferReshape, Grad: gradReshape, FLOPs: noFLOPs, Alias: true,
		DiffWRT: func(a npu.Attrs, n int) []bool { return slices.Repeat([]bool{!a.Bool("stop")}, n) },
	})
	Register(&Kind{Name: npu.Convert, Infer: inferConvert, Grad: gradConvert, FLOPs: noFLOPs, In: []Class{Keep}, Out: []Class{Keep}})
	Register(&Kind{Name: npu.Fill, Infer: inferFill, FLOPs: noFLOPs, Out: []Class{Keep}})
}

func inferTranspose(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "perm:n")
	if !c.ok() {
		return nil, c.err
	}
	x, perm := in[0].Shape, a.Ints("perm")
	y := npu.Shape{}
	for i, p := range slices.Sorted(slices.Values(perm)) {
		if len(perm) != len(x) || p != i {
			c.failf("perm %v is not a permutation of the %d axes of x %v", perm, len(x), x)
			return nil, c.err
		}
		y = append(y, x[perm[i]])
	}
	if len(perm) != len(x) {
		c.failf("perm %v is not a permutation of the %d axes of x %v", perm, len(x), x)
	}
	return c.done(npu.Desc{Shape: y, DType: in[0].DType})
}

func gradTranspose(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	perm := c.Attrs.Ints("perm")
	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	return r.done(r.do(npu.Transpose, npu.Attrs{"perm": back}, c.DOut))
}

func inferConcat(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "…", "axis:i")
	if len(in) == 0 {
		c.failf("takes at least one input")
	}
	if !c.ok() {
		return nil, c.err
	}
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

func gradConcat(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	axis, at := c.Attrs.Int("axis", 0), 0
	g := make([]Ref, len(c.In))
	for i, x := range c.In {
		s := x.Desc().Shape
		begin, end := make([]int, len(s)), slices.Clone([]int(s))
		begin[axis], end[axis] = at, at+s[axis]
		at += s[axis]
		g[i] = r.do(npu.Slice, npu.Attrs{"begin": begin, "end": end}, c.DOut)
	}
	return r.done(g...)
}

func inferSlice(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "begin:n end:n")
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

func gradSlice(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	after := slices.Clone([]int(c.In[0].Desc().Shape))
	for i, e := range c.Attrs.Ints("end") {
		after[i] -= e
	}
	return r.done(r.do(npu.Pad, npu.Attrs{"before": c.Attrs.Ints("begin"), "after": after}, c.DOut))
}

func inferPad(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "before:n after:n")
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

func gradPad(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	begin := c.Attrs.Ints("before")
	end := slices.Clone([]int(c.In[0].Desc().Shape))
	for i, b := range begin {
		end[i] += b
	}
	return r.done(r.do(npu.Slice, npu.Attrs{"begin": begin, "end": end}, c.DOut))
}

func inferReshape(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "shape:n stop:b")
	to := c.shape("shape")
	if c.ok() && to.Elems() != elems(in[0]) {
		c.failf("x %v has %d elements, %v has %d", in[0].Shape, elems(in[0]), to, to.Elems())
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: to, DType: in[0].DType})
}

func gradReshape(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Reshape, npu.Attrs{"shape": []int(c.In[0].Desc().Shape)}, c.DOut))
}

func inferConvert(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "dtype:s")
	to, err := npu.ParseDType(a.Str("dtype"))
	if err != nil {
		c.failf("attribute dtype: %w", err)
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0].As(to))
}

func gradConvert(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Convert, npu.Attrs{"dtype": c.In[0].Desc().DType.String()}, c.DOut))
}

func inferFill(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "", "value:f shape:n dtype:s")
	s := c.shape("shape")
	t, err := npu.ParseDType(a.Str("dtype"))
	if err != nil {
		c.failf("attribute dtype: %w", err)
	}
	return c.done(npu.Desc{Shape: s, DType: t})
}
