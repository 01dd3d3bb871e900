//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// muchWork is the number of multiplications from which plain loops are too slow: they do about 10⁹ per second, a kernel 50·10⁹.
const muchWork = 1e7

// plainLoops reports whether the op is large and executed by a reference implementation, the library's or Go's.
func plainLoops(op npu.Op, impl string) bool {
	slow := strings.HasPrefix(impl, "go:") || strings.HasPrefix(impl, "dnnl:") && strings.Contains(impl, "ref")
	return slow && multiplications(op) >= muchWork
}

// multiplications counts an op's multiplications for the kinds that mainly consist of them; 0 for others.
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
