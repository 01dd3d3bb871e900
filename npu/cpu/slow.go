//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// muchWork is how many multiplications are too many for plain loops, which do some 10⁹ in a second where a kernel does 50·10⁹.
const muchWork = 1e7

// plainLoops says whether the op is large and the implementation one of the library's or of Go's reference.
func plainLoops(op npu.Op, impl string) bool {
	slow := strings.HasPrefix(impl, "go:") || strings.HasPrefix(impl, "dnnl:") && strings.Contains(impl, "ref")
	return slow && multiplications(op) >= muchWork
}

// multiplications is how many an op has, for the kinds that consist of them; else 0.
func multiplications(op npu.Op) float64 {
	elems := func(d npu.Desc) float64 { return float64(d.Shape.Elems()) }
	per := func(d npu.Desc) float64 { return elems(d) / float64(max(1, d.Shape[0])) }
	switch op.Kind {
	case npu.Conv2D:
		return elems(op.Out[0]) * per(op.In[1])
	case npu.Conv2DBwdData:
		return elems(op.In[0]) * per(op.In[1])
	case npu.Conv2DBwdWeights:
		return elems(op.In[1]) * per(op.Out[0])
	case npu.MatMul:
		inner := op.In[0].Shape[len(op.In[0].Shape)-1]
		if op.Attrs.Bool("ta") {
			inner = op.In[0].Shape[len(op.In[0].Shape)-2]
		}
		return elems(op.Out[0]) * float64(inner)
	case npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad:
		return elems(op.In[0]) * float64(op.In[1].Shape[0])
	case npu.Attention, npu.AttentionBwd:
		return elems(op.In[0]) * float64(op.In[0].Shape[1])
	}
	return 0
}
