package graph

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Reshape gives x another shape with as many elements. One extent may be -1: whatever is left.
func (b *Builder) Reshape(x *Node, shape ...int) *Node {
	shape = slices.Clone(shape)
	if b.err == nil && b.owns(x, "reshape: x") {
		free, n := -1, 1
		for i, d := range shape {
			if d == -1 && free < 0 {
				free = i
			} else {
				n *= d
			}
		}
		if all := int(b.Desc(x).Shape.Elems()); free >= 0 {
			if n <= 0 || all%n != 0 {
				b.Failf("reshape: the %d elements of x %v do not make the shape %v", all, b.Desc(x).Shape, shape)
				return b.placeholder
			}
			shape[free] = all / n
		}
	}
	return b.apply(npu.Reshape, npu.Attrs{"shape": shape}, []*Node{x})
}

// Flatten keeps the first axis and makes one of the rest.
func (b *Builder) Flatten(x *Node) *Node { return b.Reshape(x, b.Dim(x, 0), -1) }

// StopGrad is x, but no gradient flows back through it.
func (b *Builder) StopGrad(x *Node) *Node {
	return b.apply(npu.Reshape, npu.Attrs{"shape": []int(b.Desc(x).Shape), "stop": true}, []*Node{x})
}

// Concat joins tensors along an axis.
func (b *Builder) Concat(axis int, x ...*Node) *Node {
	if len(x) > 0 {
		axis = b.axis(x[0], axis)
	}
	return b.apply(npu.Concat, npu.Attrs{"axis": axis}, x)
}

// Transpose reorders the axes; without perm it swaps the last two.
func (b *Builder) Transpose(x *Node, perm ...int) *Node {
	if r := len(b.Desc(x).Shape); len(perm) == 0 && r > 1 {
		for i := range r {
			perm = append(perm, i)
		}
		perm[r-1], perm[r-2] = r-2, r-1
	}
	return b.apply(npu.Transpose, npu.Attrs{"perm": perm}, []*Node{x})
}

// Slice takes begin … end-1 along one axis.
func (b *Builder) Slice(x *Node, axis, begin, end int) *Node {
	s := b.Desc(x).Shape
	lo, hi := make([]int, len(s)), slices.Clone([]int(s))
	if axis = b.axis(x, axis); b.err == nil {
		lo[axis], hi[axis] = begin, end
	}
	return b.apply(npu.Slice, npu.Attrs{"begin": lo, "end": hi}, []*Node{x})
}

// axis turns a negative axis into one from the front and checks it.
func (b *Builder) axis(x *Node, axis int) int {
	r := len(b.Desc(x).Shape)
	if axis < 0 {
		axis += r
	}
	if b.err == nil && x != nil && (axis < 0 || axis >= r) {
		b.Failf("axis %d of a tensor of shape %v", axis, b.Desc(x).Shape)
	}
	return axis
}

// Cast changes the element type.
func (b *Builder) Cast(x *Node, t npu.DType) *Node {
	return b.apply(npu.Convert, npu.Attrs{"dtype": t.String()}, []*Node{x})
}

// BroadcastTo repeats x along axes of extent 1 and new leading axes.
func (b *Builder) BroadcastTo(x *Node, shape ...int) *Node {
	return b.apply(npu.BroadcastTo, npu.Attrs{"shape": shape}, []*Node{x})
}

// Sum, Mean and Max reduce over axes, over all without any. The axes vanish.
func (b *Builder) Sum(x *Node, axes ...int) *Node { return b.Reduce("sum", x, false, axes...) }

// Mean is the mean over axes.
func (b *Builder) Mean(x *Node, axes ...int) *Node { return b.Reduce("mean", x, false, axes...) }

// Max is the maximum over axes; equal maxima share the gradient.
func (b *Builder) Max(x *Node, axes ...int) *Node { return b.Reduce("max", x, false, axes...) }

// Reduce is sum, mean or max over axes; keep leaves them with extent 1.
func (b *Builder) Reduce(fn string, x *Node, keep bool, axes ...int) *Node {
	r := len(b.Desc(x).Shape)
	as := make([]int, 0, r)
	for _, a := range axes {
		as = append(as, b.axis(x, a))
	}
	for i := 0; len(axes) == 0 && i < r; i++ {
		as = append(as, i)
	}
	slices.Sort(as)
	return b.apply(npu.Reduce, npu.Attrs{"fn": fn, "axes": as, "keep": keep}, []*Node{x})
}
