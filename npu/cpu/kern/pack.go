//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "pack.h"
import "C"

import "slices"

// Order is where the elements of a matrix, or of weights, are: element (i, j, …) is at the sum of its indices times Strides, if there are no blocks.
// With blocks, dimension Index[k] is divided by Blocks[k], outermost first; what remains of it counts inside the blocks, the last of which is contiguous.
type Order struct {
	Dims, Padded, Strides []int64
	Blocks, Index         []int64
}

// Pack copies float32 weights without blocks to bf16 in the order that matrix kernels read: the last block is two elements of one dimension, the one before it
// 16 or more of another, and a third may count pairs. It is nil for other orders, and where vectors of 16 do not fill them.
func Pack(from, to Order) *Call {
	n := len(to.Blocks)
	if len(from.Blocks) > 0 || n < 2 || n > 3 || to.Blocks[n-1] != 2 || !slices.Equal(from.Dims, to.Dims) {
		return nil
	}
	pair, col, inner := to.Index[n-1], to.Index[n-2], int64(1)
	if n == 3 {
		if inner = to.Blocks[0]; to.Index[0] != pair {
			return nil
		}
	}
	block, rows, columns := to.Blocks[n-2], to.Dims[pair], to.Dims[col]
	turned := from.Strides[pair] == 1
	if pair == col || block%16 != 0 || columns%16 != 0 || rows != to.Padded[pair] || !turned && from.Strides[col] != 1 || turned && rows%32 != 0 {
		return nil
	}
	v := []int64{rows / 2, inner, to.Strides[pair], from.Strides[pair], columns, to.Padded[col], block, to.Strides[col], from.Strides[col]}
	outer := 0
	for d, size := range to.Dims {
		if int64(d) == pair || int64(d) == col || size == 1 {
			continue
		}
		if outer++; outer > C.PACK_OUTER || to.Padded[d] != size {
			return nil
		}
		v = append(v, size, from.Strides[d], to.Strides[d])
	}
	for ; outer < C.PACK_OUTER; outer++ {
		v = append(v, 1, 0, 0)
	}
	return &Call{kernel: "pack", isa: best(), dt: C.KERN_BF16, v: v, slots: []int{0, 1}}
}
