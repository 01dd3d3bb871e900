//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "flags.h"
// #include "kern.h"
import "C"

import "github.com/gotrain/gotrain/npu"

// maxFewRows is the number of rows up to which a product is limited by reading the matrix.
const maxFewRows = 8

func init() { register(npu.MatMul, prepareFewRows) }

// prepareFewRows handles y = a·bᵀ (+ bias) with a [M K], M ≤ 8, and b [N K], as in linear layers during generation.
func prepareFewRows(op npu.Op) *Call {
	a, b, y := op.In[0], op.In[1], op.Out[0]
	if len(a.Shape) != 2 || op.Attrs.Bool("ta") || !op.Attrs.Bool("tb") || !allPlain(op) || a.DType != b.DType || !plainF32(op.In[2:]...) {
		return nil
	}
	m, k, n := int64(a.Shape[0]), int64(a.Shape[1]), int64(b.Shape[0])
	dt, ok := act(a.DType)
	if !ok || m < 1 || m > maxFewRows || k == 0 || y.DType != a.DType && y.DType != npu.F32 {
		return nil
	}
	c := &Call{
		kernel: "fewrows", dt: dt, n: []int64{m, k, n}, slots: []int{0, 1, 3},
		flags: bit(op.Attrs.Bool("bias"), C.FEW_BIAS) | bit(y.DType == npu.F32, C.FEW_OUT_F32),
	}
	if op.Attrs.Bool("bias") {
		c.slots = []int{0, 1, 2, 3}
	}
	if a.DType == npu.BF16 {
		c.workspace = m * k * 4 // a in float32
	}
	return c
}

// setApart chooses how matrices are walked, for tests: 1 in streams, 0 by neighbouring rows, -1 as this processor prefers.
func setApart(way int) { C.kern_few_apart = C.int(way) }
