//go:build cgo && linux && (amd64 || arm64)

package cpu

import "github.com/gotrain/gotrain/npu"

// dnnlMakers lists the kinds that the library executes.
var dnnlMakers = map[string]maker{
	npu.Conv2D: convMaker, npu.Conv2DBwdData: convMaker, npu.Conv2DBwdWeights: convMaker,
	npu.MatMul: matmulMaker, npu.LinearCrossEntropy: linearCEMaker, npu.LinearCrossEntropyBwd: linearCEMaker, npu.LinearCrossEntropyGrad: linearCEMaker,
	npu.Convert: convertMaker,
	npu.MaxPool: poolMaker, npu.MaxPoolBwd: poolMaker, npu.AvgPool: poolMaker, npu.AvgPoolBwd: poolMaker,
	npu.Softmax: softmaxMaker, npu.SoftmaxBwd: softmaxMaker, npu.LogSoftmax: softmaxMaker, npu.LogSoftmaxBwd: softmaxMaker,
}

// products are the kinds that consist of multiplications.
var products = map[string]bool{
	npu.Conv2D: true, npu.Conv2DBwdData: true, npu.Conv2DBwdWeights: true, npu.MatMul: true,
	npu.LinearCrossEntropy: true, npu.LinearCrossEntropyBwd: true, npu.LinearCrossEntropyGrad: true,
}

// makers lists the ways to execute an op, best first. Package kern has only kernels that beat the library's. An op that names an algorithm has one way.
func (d *Device) makers(op npu.Op) []maker {
	if winogradForms[op.Attrs.Str(npu.AttrAlgorithm)].tile != 0 {
		return []maker{winogradMaker}
	}
	if op.Attrs.Str(npu.AttrAlgorithm) == npu.Pairs {
		return []maker{pairsMaker}
	}
	kind, list := op.Kind, []maker{kernMaker}
	m, ok := dnnlMakers[kind]
	switch {
	case !ok || d.lib == nil:
	case m.widens:
		list = append(list, m)
	default:
		ways := []maker{m}
		if kind == npu.Conv2DBwdData || kind == npu.Conv2DBwdWeights {
			ways = []maker{pointwiseMaker, columnsMaker, m}
		}
		for _, m := range ways {
			list = append(list, native(m))
		}
		for _, m := range ways {
			list = append(list, widened(m))
		}
	}
	return append(list, goMaker)
}
