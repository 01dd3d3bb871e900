package lower

import (
	"fmt"
	"slices"
)

// tensor is a contiguous view of the memory at ref from its beginning.
func tensor(ref Ref, t DType, dims ...int64) Tensor {
	v := Tensor{Base: ref, DType: t, Dims: slices.Clone(dims), Format: ND}
	v.Strides = rowMajor(v.Dims)
	v.Storage = v.Elems()
	return v
}

func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(1, dims[i])
	}
	return s
}

// Elems is the number of elements of the view.
func (t Tensor) Elems() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Contiguous reports whether the elements lie one behind the other in the order of the dimensions.
func (t Tensor) Contiguous() bool {
	n := int64(1)
	for i := len(t.Dims) - 1; i >= 0; i-- {
		if t.Dims[i] != 1 && t.Strides[i] != n {
			return false
		}
		n *= t.Dims[i]
	}
	return true
}

// permute reorders dimensions: dimension i of the result is dimension perm[i] of t.
func (t Tensor) permute(perm ...int) Tensor {
	v := t
	v.Dims, v.Strides = make([]int64, len(perm)), make([]int64, len(perm))
	for i, p := range perm {
		v.Dims[i], v.Strides[i] = t.Dims[p], t.Strides[p]
	}
	return v
}

// swap exchanges the last two dimensions.
func (t Tensor) swap() Tensor {
	perm := make([]int, len(t.Dims))
	for i := range perm {
		perm[i] = i
	}
	n := len(perm)
	perm[n-1], perm[n-2] = n-2, n-1
	return t.permute(perm...)
}

// slice keeps lo…hi-1 of a dimension.
func (t Tensor) slice(dim int, lo, hi int64) Tensor {
	if lo < 0 || hi < lo || hi > t.Dims[dim] {
		panic(fmt.Sprintf("lower: slice %d…%d of dimension %d of %v", lo, hi, dim, t.Dims))
	}
	v := t
	v.Dims = slices.Clone(t.Dims)
	v.Dims[dim] = hi - lo
	v.Offset += lo * t.Strides[dim]
	return v
}

// every keeps n elements of a dimension, from lo on in the given step.
func (t Tensor) every(dim int, lo, n, step int64) Tensor {
	v := t.slice(dim, lo, lo+(n-1)*step+1)
	v.Strides = slices.Clone(t.Strides)
	v.Dims[dim], v.Strides[dim] = n, step*t.Strides[dim]
	return v
}

// reshape gives a contiguous view other dimensions.
func (t Tensor) reshape(dims ...int64) Tensor {
	v := t
	v.Dims, v.Strides = slices.Clone(dims), rowMajor(dims)
	if !t.Contiguous() || v.Elems() != t.Elems() {
		panic(fmt.Sprintf("lower: %v with strides %v as %v", t.Dims, t.Strides, dims))
	}
	v.Format = ND
	return v
}

// flat is the contiguous view as a vector.
func (t Tensor) flat() Tensor { return t.reshape(t.Elems()) }

// unsqueeze inserts a dimension of 1.
func (t Tensor) unsqueeze(dim int) Tensor {
	v := t
	v.Dims, v.Strides = slices.Insert(slices.Clone(t.Dims), dim, 1), slices.Insert(slices.Clone(t.Strides), dim, 1)
	return v
}

// squeeze removes a dimension of 1.
func (t Tensor) squeeze(dim int) Tensor {
	v := t
	v.Dims, v.Strides = slices.Delete(slices.Clone(t.Dims), dim, dim+1), slices.Delete(slices.Clone(t.Strides), dim, dim+1)
	return v
}

// broadcast repeats dimensions of 1, and adds leading ones, by stride 0.
func (t Tensor) broadcast(dims ...int64) Tensor {
	v := t
	lead := len(dims) - len(t.Dims)
	v.Dims, v.Strides = slices.Clone(dims), make([]int64, len(dims))
	for i, d := range t.Dims {
		switch dims[lead+i] {
		case d:
			v.Strides[lead+i] = t.Strides[i]
		default:
			if d != 1 {
				panic(fmt.Sprintf("lower: %v broadcast to %v", t.Dims, dims))
			}
		}
	}
	return v
}

// at is element i of a vector, as a vector of one element.
func (t Tensor) at(i int64) Tensor { return t.flat().slice(0, i, i+1) }

// nchw marks a 4-dimensional view as an image.
func (t Tensor) nchw() Tensor { t.Format = NCHW; return t }
