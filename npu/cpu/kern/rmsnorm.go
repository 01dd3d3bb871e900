//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.RMSNorm, prepareRMSNorm)
	register(npu.RMSNormBwd, prepareRMSNormBwd)
}

// rmsCall is the Call of an op on rows of x; its other arguments are like x or plain float32.
func rmsCall(kernel string, op npu.Op, x npu.Desc, full ...npu.Desc) *Call {
	dt, ok := act(x.DType)
	if !ok || !allPlain(op) || !plainF32(full...) {
		return nil
	}
	d := x.Shape[len(x.Shape)-1]
	if d == 0 {
		return nil
	}
	return &Call{kernel: kernel, dt: dt, n: []int64{x.Shape.Elems() / int64(d), int64(d)}, f: []float64{op.Attrs.Float("eps", 1e-5)}}
}

func prepareRMSNorm(op npu.Op) *Call {
	x := op.In[0]
	full := []npu.Desc{op.In[1]}
	if len(op.Out) > 1 {
		full = append(full, op.Out[1])
	}
	c := rmsCall("rmsnorm", op, x, full...)
	same := alike(append([]npu.Desc{x, op.Out[0]}, op.In[2:]...)...)
	if c == nil || !same || len(op.Out) > 2 && (len(op.In) < 3 || !alike(x, op.Out[2])) {
		return nil
	}
	c.slots = append(append([]int{}, []int{0, 1, 2}[:len(op.In)]...), []int{3, 4, 5}[:len(op.Out)]...)
	return c
}

// prepareRMSNormBwd keeps a float32 row for each 32 rows.
func prepareRMSNormBwd(op npu.Op) *Call {
	x := op.In[1]
	c := rmsCall("rmsnorm_bwd", op, x, append([]npu.Desc{op.In[2], op.In[3]}, op.Out[1:]...)...)
	if c == nil || !alike(append([]npu.Desc{x, op.In[0], op.Out[0]}, op.In[4:]...)...) {
		return nil
	}
	c.slots = append(append([]int{}, []int{0, 1, 2, 3, 4}[:len(op.In)]...), []int{5, 6}[:len(op.Out)]...)
	c.workspace = (c.n[0] + 31) / 32 * c.n[1] * 4
	return c
}
