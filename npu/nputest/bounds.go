package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// exact are the kinds whose results are values of their inputs, or counts: they must be equal. So must integers be, whatever the kind.
var exact = map[string]bool{
	npu.Relu: true, npu.ReluBwd: true, npu.MaxPool: true, npu.BroadcastTo: true, npu.TopK: true, npu.Transpose: true, npu.Concat: true, npu.Slice: true,
	npu.Pad: true, npu.Reshape: true, npu.Convert: true, npu.Fill: true, npu.Embedding: true, npu.CacheWrite: true,
}

// exactFns are the functions of unary, binary and reduce of that nature.
var exactFns = map[string]bool{"neg": true, "abs": true, "sign": true, "max": true, "min": true, "gt": true, "ge": true, "eq": true}

// roundings is how often a kernel may round to the type of activations on the way to a result of that type: its steps where a device composes the
// kind. 1 for all others.
var roundings = map[string]float64{
	npu.SwiGLU: 2, npu.SwiGLUBwd: 3, npu.RMSNorm: 2, npu.RMSNormBwd: 2, npu.LayerNorm: 2, npu.LayerNormBwd: 2, npu.BatchNorm: 2, npu.BatchNormInfer: 2,
	npu.Attention: 2, npu.AttentionBwd: 3, npu.AttentionCached: 2,
	npu.LinearCrossEntropy: 2, npu.LinearCrossEntropyBwd: 2, npu.LinearCrossEntropyGrad: 2, npu.CrossEntropyBwd: 2, npu.SoftCrossEntropyBwd: 2,
	npu.SoftmaxBwd: 2, npu.LogSoftmaxBwd: 2,
}

// throughAct are the kinds whose float32 results come from probabilities that were rounded to the type of activations (as the product that follows wants
// them), so float32 results have the bound of that type.
var throughAct = map[string]bool{npu.LinearCrossEntropyBwd: true, npu.LinearCrossEntropyGrad: true}

// ulp is the largest relative error of rounding once.
func ulp(t npu.DType) float64 {
	switch t {
	case npu.BF16:
		return 1.0 / 256
	case npu.F16:
		return 1.0 / 2048
	}
	return 1.0 / (1 << 24)
}

// Bound is the largest error of output out of an op that passes, relative to Tensor.Size + |value|; 0 means equal. act is the type of activations.
//
// Sums are made in float32, in an order of the kernel's own: with terms of size 1 the error is at most some units in the last place of the sum's typical
// size, √terms, which is Tensor.Size; 64 of them also cover exponentials and the like in float32. A result in 16 bits may be off by two
// roundings for each entry of roundings: one of its own, and one because two float32 values on two sides of a rounding border differ by a unit.
func Bound(op npu.Op, out int, act npu.DType) float64 {
	t := op.Out[out].DType
	if !t.IsFloat() || exact[op.Kind] || (op.Kind == npu.Unary || op.Kind == npu.Binary || op.Kind == npu.Reduce) && exactFns[op.Attrs.Str("fn")] {
		return 0
	}
	full := 64 * ulp(npu.F32)
	if throughAct[op.Kind] && (act == npu.BF16 || act == npu.F16) {
		full = 2 * ulp(act)
	}
	if t == npu.BF16 || t == npu.F16 {
		return full + 2*ulp(t)*max(1, roundings[op.Kind])
	}
	return full
}

// difference compares a result with what it must be. worst is the largest error as a part of what is allowed; the error names the first element above.
func difference(x Tensor, got, want []byte, bound float64) (worst float64, err error) {
	g, err := decode(x.Desc, got)
	if err != nil {
		return 0, err
	}
	w, err := decode(x.Desc, want)
	if err != nil {
		return 0, err
	}
	size := x.Size
	if size == 0 {
		size = 1
	}
	bad, count := error(nil), 0
	check := func(i int) {
		if g[i] == w[i] || g[i] != g[i] && w[i] != w[i] {
			return
		}
		e, allowed := math.Abs(g[i]-w[i]), bound*(size+math.Abs(w[i]))
		part := e / allowed
		if !(e <= allowed) { // also where the error is NaN, or nothing is allowed
			if count++; bad == nil {
				bad = fmt.Errorf("element %d is %g, must be %g ± %.2g", i, g[i], w[i], allowed)
			}
			part = math.Inf(1)
			if e/allowed > 1 {
				part = e / allowed
			}
		}
		worst = max(worst, part)
	}
	if x.Only != nil {
		for _, i := range x.Only {
			check(i)
		}
	} else {
		for i := range g {
			check(i)
		}
	}
	if count > 1 {
		bad = fmt.Errorf("%w (%d of %d elements are wrong)", bad, count, len(g))
	}
	return worst, bad
}
