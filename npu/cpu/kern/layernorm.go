//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.LayerNorm, prepareLayerNorm)
	register(npu.LayerNormBwd, prepareLayerNormBwd)
}

func prepareLayerNorm(op npu.Op) *Call {
	x := op.In[0]
	full := append([]npu.Desc{}, op.In[1:3]...)
	full = append(full, op.Out[1:min(3, len(op.Out))]...)
	c := rmsCall("layernorm", op, x, full...)
	if c == nil || !alike(append([]npu.Desc{x, op.Out[0]}, op.In[3:]...)...) || len(op.Out) > 3 && (len(op.In) < 4 || !alike(x, op.Out[3])) {
		return nil
	}
	c.slots = append(append([]int{}, []int{0, 1, 2, 3}[:len(op.In)]...), []int{4, 5, 6, 7}[:len(op.Out)]...)
	return c
}

// prepareLayerNormBwd keeps two float32 rows for each 32 rows.
func prepareLayerNormBwd(op npu.Op) *Call {
	x := op.In[1]
	c := rmsCall("layernorm_bwd", op, x, append(append([]npu.Desc{}, op.In[2:5]...), op.Out[1:]...)...)
	if c == nil || !alike(append([]npu.Desc{x, op.In[0], op.Out[0]}, op.In[5:]...)...) {
		return nil
	}
	c.slots = append(append([]int{}, []int{0, 1, 2, 3, 4, 5}[:len(op.In)]...), []int{6, 7, 8}[:len(op.Out)]...)
	c.workspace = (c.n[0] + 31) / 32 * 2 * c.n[1] * 4
	return c
}
