package nputest

import (
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

var inf, nan = math.Inf(1), math.NaN()

// generator says how the cases of a kind are made. Flat kinds have float32 vectors, whatever activations are.
type generator struct {
	cases func(s *suite)
	flat  bool
}

var generators = map[string]generator{
	npu.Conv2D: {cases: convCases}, npu.Conv2DBwdData: {cases: convCases}, npu.Conv2DBwdWeights: {cases: convCases},
	npu.MatMul:    {cases: matmulCases},
	npu.BatchNorm: {cases: batchNormCases}, npu.BatchNormInfer: {cases: batchNormCases}, npu.BatchNormBwd: {cases: batchNormBwdCases},
	npu.Relu: {cases: reluCases}, npu.ReluBwd: {cases: reluCases}, npu.Unary: {cases: unaryCases}, npu.Binary: {cases: binaryCases},
	npu.Gelu: {cases: geluCases}, npu.GeluBwd: {cases: geluCases},
	npu.BroadcastTo: {cases: broadcastCases}, npu.Reduce: {cases: reduceCases},
	npu.MaxPool: {cases: maxPoolCases}, npu.MaxPoolBwd: {cases: maxPoolCases},
	npu.AvgPool: {cases: avgPoolCases}, npu.AvgPoolBwd: {cases: avgPoolCases},
	npu.GlobalAvgPool: {cases: gapCases}, npu.GlobalAvgPoolBwd: {cases: gapCases},
	npu.Softmax: {cases: softmaxCases}, npu.SoftmaxBwd: {cases: softmaxCases},
	npu.LogSoftmax: {cases: softmaxCases}, npu.LogSoftmaxBwd: {cases: softmaxCases},
	npu.CrossEntropy: {cases: crossEntropyCases}, npu.CrossEntropyBwd: {cases: crossEntropyCases}, npu.TopK: {cases: topkCases},
	npu.OneHot: {cases: oneHotCases}, npu.SoftCrossEntropy: {cases: softCrossEntropyCases}, npu.SoftCrossEntropyBwd: {cases: softCrossEntropyCases},
	npu.BCE: {cases: pairedCases}, npu.BCEBwd: {cases: pairedCases}, npu.MSE: {cases: pairedCases}, npu.MSEBwd: {cases: pairedCases},
	npu.Dropout:   {cases: dropoutCases},
	npu.Transpose: {cases: transposeCases}, npu.Concat: {cases: concatCases}, npu.Slice: {cases: sliceCases}, npu.Pad: {cases: sliceCases},
	npu.Reshape: {cases: reshapeCases}, npu.Convert: {cases: convertCases}, npu.Fill: {cases: fillCases},
	npu.Embedding: {cases: embeddingCases}, npu.EmbeddingBwd: {cases: embeddingCases},
	npu.RMSNorm: {cases: rmsNormCases}, npu.RMSNormBwd: {cases: rmsNormCases}, npu.Rope: {cases: ropeCases},
	npu.LayerNorm: {cases: layerNormCases}, npu.LayerNormBwd: {cases: layerNormCases},
	npu.Attention: {cases: attentionCases}, npu.AttentionBwd: {cases: attentionCases},
	npu.AttentionCached: {cases: cachedCases}, npu.CacheWrite: {cases: cacheWriteCases},
	npu.SwiGLU: {cases: swigluCases}, npu.SwiGLUBwd: {cases: swigluCases},
	npu.LinearCrossEntropy: {cases: linearCECases}, npu.LinearCrossEntropyBwd: {cases: linearCECases}, npu.LinearCrossEntropyGrad: {cases: linearCECases},
	npu.SGD: {sgdCases, true}, npu.AdamW: {adamWCases, true}, npu.SumSq: {sumSqCases, true}, npu.LARS: {larsCases, true}, npu.Scale: {scaleCases, true},
	npu.EMA: {emaCases, true}, npu.LAMBMoments: {lambCases, true}, npu.LAMB: {lambCases, true},
}

// Kinds lists the kinds that have cases, in alphabetical order: all of npu/kinds.go.
func Kinds() []string { return slices.Sorted(maps.Keys(generators)) }

// Generated is how many shapes a kind has besides those that are written down, unless Options say otherwise.
const Generated = 8

// Cases returns the cases of a kind for activations of type t: the same ones at each call. Kinds on flat memory have some for F32 only.
func Cases(kind string, t npu.DType) []Case { return Generate(kind, t, 1, Generated) }

// Generate returns cases with n generated shapes, which depend on the seed, and so do all values.
func Generate(kind string, t npu.DType, seed uint64, n int) []Case {
	g, ok := generators[kind]
	if !ok || g.flat && t != npu.F32 {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(kind))
	s := &suite{kind: kind, t: t, f: npu.F32, n: n, r: rand.New(rand.NewPCG(seed, h.Sum64()))}
	if t == npu.F64 {
		s.f = npu.F64
	}
	g.cases(s)
	return s.cases
}
