package lower

import "github.com/gotrain/gotrain/npu"

// Slack is by what factor the error of an f32 output may exceed that of a kernel that computes in f32 throughout, because something before it is rounded to
// 16 bits; 1 for all other outputs. The tests of kernels use it.
func Slack(op npu.Op, out int, c Caps) float64 {
	if op.Out[out].DType != npu.F32 || len(op.In) == 0 {
		return 1
	}
	var rounded bool
	switch op.Kind {
	case npu.MatMul, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad: // the product before it is f32
		rounded = !c.wide() && !c.Exact
	case npu.BatchNormBwd: // the sum of gradients, of which dgamma and dbeta are sums
		rounded = op.Attrs.Bool("sum")
	}
	if !rounded {
		return 1
	}
	// f32 has 24 bits. The bound of f32 is 64 units in the last place, the one of 16 bits 2.
	switch op.In[0].DType {
	case npu.BF16:
		return 1 << (24 - 8 - 5)
	case npu.F16:
		return 1 << (24 - 11 - 5)
	}
	return 1
}
