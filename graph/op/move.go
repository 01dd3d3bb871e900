package op

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.Transpose), Grad: gradTranspose, FLOPs: noFLOPs})
	Register(&Kind{Kind: kind.Of(npu.Concat), Grad: gradConcat, FLOPs: noFLOPs})
	Register(&Kind{Kind: kind.Of(npu.Slice), Grad: gradSlice, FLOPs: noFLOPs})
	Register(&Kind{Kind: kind.Of(npu.Pad), Grad: gradPad, FLOPs: noFLOPs})
	Register(&Kind{
		Kind: kind.Of(npu.Reshape), Grad: gradReshape, FLOPs: noFLOPs,
		DiffWRT: func(a npu.Attrs, n int) []bool { return slices.Repeat([]bool{!a.Bool("stop")}, n) },
	})
	Register(&Kind{Kind: kind.Of(npu.Convert), Grad: gradConvert, FLOPs: noFLOPs})
	Register(&Kind{Kind: kind.Of(npu.Fill), FLOPs: noFLOPs})
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

func gradSlice(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	after := slices.Clone([]int(c.In[0].Desc().Shape))
	for i, e := range c.Attrs.Ints("end") {
		after[i] -= e
	}
	return r.done(r.do(npu.Pad, npu.Attrs{"before": c.Attrs.Ints("begin"), "after": after}, c.DOut))
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

func gradReshape(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Reshape, npu.Attrs{"shape": []int(c.In[0].Desc().Shape)}, c.DOut))
}

func gradConvert(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Convert, npu.Attrs{"dtype": c.In[0].Desc().DType.String()}, c.DOut))
}
