package npu

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the logical extent of a tensor, outermost dimension first. A scalar has the empty shape.
type Shape []int

// Elems is the number of elements; 1 for a scalar.
func (s Shape) Elems() int64 {
	n := int64(1)
	for _, d := range s {
		n *= int64(d)
	}
	return n
}

// Equal reports whether both have the same dimensions.
func (s Shape) Equal(o Shape) bool { return slices.Equal(s, o) }

// Clone is a copy that shares no memory.
func (s Shape) Clone() Shape { return slices.Clone(s) }

// String prints [16 3 224 224].
func (s Shape) String() string { return fmt.Sprint([]int(s)) }

// Layout names the order of a tensor's elements in memory. Plain is the canonical one: row-major in the order of
// the shape (NCHW, OIHW). Every other value except Any is a token of the device that made it: equal tokens (with equal
// shape and dtype) mean equal memory, and nothing else may be inferred from a token. Checkpoints, export and users
// always see Plain; the plan inserts a Convert op where two kernels disagree.
type Layout string

const (
	// Plain is row-major in the order of the shape.
	Plain Layout = ""
	// Any asks the device to choose.
	Any Layout = "any"
)

// Desc describes one tensor: what it is, not where.
type Desc struct {
	Shape  Shape
	DType  DType
	Layout Layout
}

// D returns a plain Desc.
func D(t DType, shape ...int) Desc { return Desc{Shape: shape, DType: t} }

// With returns the same tensor in another layout.
func (d Desc) With(l Layout) Desc { d.Layout = l; return d }

// As returns the same tensor with another element type, plain.
func (d Desc) As(t DType) Desc { d.DType = t; d.Layout = Plain; return d }

// Equal compares shape, dtype and layout.
func (d Desc) Equal(o Desc) bool {
	return d.DType == o.DType && d.Layout == o.Layout && d.Shape.Equal(o.Shape)
}

// PlainBytes is the size in the plain layout. For other layouts ask Device.Bytes.
func (d Desc) PlainBytes() int64 { return d.Shape.Elems() * int64(d.DType.Size()) }

// String prints f32[16 64 56 56]@layout.
func (d Desc) String() string {
	var b strings.Builder
	b.WriteString(d.DType.String())
	b.WriteString(d.Shape.String())
	if d.Layout != Plain {
		b.WriteString("@" + string(d.Layout))
	}
	return b.String()
}
