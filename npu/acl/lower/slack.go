package lower

import "github.com/gotrain/gotrain/npu"

// Slack is by what factor the error of an output may exceed that of a kernel that computes in f32 throughout, because something before it is rounded to
// 16 bits. The tests of kernels use it.
func Slack(op npu.Op, out int, c Caps) float64 {
	if len(op.In) == 0 {
		return 1
	}
	rounds := !c.wide() && !c.Exact // products with an f32 result
	logits := op.Kind == npu.LinearCrossEntropyBwd || op.Kind == npu.LinearCrossEntropyGrad
	if op.Out[out].DType != npu.F32 {
		if logits && rounds && op.In[0].DType != npu.F32 {
			return 8 // a logit of 8…16 that is rounded to n bits moves its probability by 8 to 16 units of n bits
		}
		return 1
	}
	var rounded bool
	switch op.Kind {
	case npu.MatMul, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad:
		rounded = rounds
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
