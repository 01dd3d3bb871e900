//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// first are tried before all others: the C kernels.
var first []maker

// dnnlMakers are the kinds that the library executes.
var dnnlMakers = map[string]maker{
	npu.Conv2D: convMaker, npu.Conv2DBwdData: convMaker, npu.Conv2DBwdWeights: convMaker,
	npu.MatMul:  matmulMaker,
	npu.Convert: convertMaker,
	npu.MaxPool: poolMaker, npu.MaxPoolBwd: poolMaker, npu.AvgPool: poolMaker, npu.AvgPoolBwd: poolMaker,
	npu.Softmax: softmaxMaker, npu.SoftmaxBwd: softmaxMaker, npu.LogSoftmax: softmaxMaker, npu.LogSoftmaxBwd: softmaxMaker,
}

// makers are the ways to execute a kind, best first. Package kern has only what it does better than the library.
func (d *Device) makers(kind string) []maker {
	list := slices.Clone(first)
	if m, ok := dnnlMakers[kind]; ok && d.lib != nil {
		if kind == npu.Conv2DBwdData || kind == npu.Conv2DBwdWeights {
			list = append(list, pointwiseMaker)
		}
		list = append(list, m)
	}
	return append(list, goMaker)
}
