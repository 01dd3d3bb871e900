package lower

import "github.com/gotrain/gotrain/npu"

// notes say where a kind differs from what package npu/ref computes, or why it takes more calls than one would expect.
var notes = map[string]string{
	npu.Conv2D: "With 16-bit activations the bias is rounded to 16 bits, because the operator wants it in x's type. Documentation and " +
		"sources of 9.x disagree on whether A2 and A3 take f32 with all bits; where the operator refuses it, the option allow_hf32 helps.",
	npu.Conv2DBwdData: "The operator wants x, of which it uses the shape only; it gets dx's memory. Not deterministic unless determinism is on, which " +
		"is the default.",
	npu.Conv2DBwdWeights: "dw is f32 for all types. With several groups the operator would round dw through f16, so each group is one call, or each tap of " +
		"the kernel where groups are many (depthwise). db is a sum in f32: the operator's is rounded to 16 bits.",
	npu.MatMul: "An f32 result of 16-bit operands is exact from CANN 9.0 on. 8.1 rounds it to 16 bits first, unless exact products are asked for, " +
		"which are slow: operands become f32. With 16-bit activations a bias is rounded to 16 bits.",
	npu.BatchNorm: "y is rounded before the residual is added. What is saved as rstd is the biased variance on A2 and A3, 1/√(variance+eps) on 950; " +
		"only the gradient reads it.",
	npu.BatchNormInfer: "y is rounded before the residual is added.",
	npu.BatchNormBwd:   "The sum of gradients is rounded to the type of activations.",
	npu.Unary:          "affine is one call where one of its numbers does nothing, and with 16 bits.",
	npu.Binary:         "Comparisons give bool, which is cast.",
	npu.MaxPool: "Dilation is composed tap by tap. Padding that differs between opposite sides, or is more than half of the kernel, is added first, and " +
		"indices are mapped back.",
	npu.MaxPoolBwd:       "As maxpool; what the operator does not take is a scatter in f32.",
	npu.AvgPool:          "Padding that the operator does not take is added first; averages that must not count it are scaled after.",
	npu.AvgPoolBwd:       "As avgpool.",
	npu.GlobalAvgPoolBwd: "Composed, because the gradient operator of the adaptive pooling is not deterministic.",
	npu.CrossEntropy: "Composed in f32: the fused operator's gradient takes neither smoothing nor i32 labels. A label outside of the classes is not reported; " +
		"the loss becomes NaN, which ends the run.",
	npu.CrossEntropyBwd:  "Labels outside of the classes are moved inside; see cross_entropy.",
	npu.OneHot:           "A label outside of the classes is not reported; its row becomes NaN, and so does a loss of it, which ends the run.",
	npu.SoftCrossEntropy: "Composed in f32.",
	npu.BCE: "Composed in f32: the fused operator wants targets of the type of x, and knows no weights of rows. The logarithm is of 1 + e^-|x|, so a loss " +
		"below 6e-8 is 0.",
	npu.BCEBwd: "As bce.",
	npu.MSE:    "Composed in f32: the fused operator wants targets of the type of x, and knows no weights of rows.",
	npu.MSEBwd: "As mse.",
	npu.TopK:   "Labels outside of the classes are moved inside; see cross_entropy.",
	npu.LinearCrossEntropy: "Some rows at a time, so that logits take 256 MiB at most. The calls per tile are listed for one tile; 8.1 rounds logits " +
		"of 16-bit operands to 16 bits, unless exact products are asked for.",
	npu.LinearCrossEntropyBwd:  "As linear_cross_entropy. Gradients of logits are rounded to the type of activations for the products.",
	npu.LinearCrossEntropyGrad: "As linear_cross_entropy_bwd.",
	npu.Dropout: "The operator's own bits. The seed is device memory, which only aclnnDropoutGenMaskV2Tensor takes: CANN 9.0 on. " +
		"With rows, a vector of factors is drawn and multiplied by.",
	npu.Convert:      "Rounding to 16 bits is the operator's, to nearest even as far as is known. rstd of batchnorm cannot be converted.",
	npu.Embedding:    "An id outside of the table is undefined; ids are checked where data enter.",
	npu.EmbeddingBwd: "Sums in f32, in the operator's order; deterministic where determinism is on.",
	npu.RMSNorm:      "AddRmsNorm cannot be used: it wants weights of the type of activations, and they are f32.",
	npu.RMSNormBwd:   "dx is rounded before the residual's gradient is added.",
	npu.LayerNormBwd: "As rmsnorm_bwd.",
	npu.Rope: "In f32: the operator wants sines and cosines in the type of x. Without the operator, or for heads that it does not take, composed. Positions " +
		"that are data (generation) are limited to 0…2²⁰-1.",
	npu.Attention: "At most 256 heads of at most 768. lse is kept as maximum and sum, 8 times each, as the gradient operator wants them. Segments and " +
		"masks are a mask of S×T bytes for each sequence, or head of it. A query that sees nothing is undefined.",
	npu.AttentionBwd:    "As attention.",
	npu.AttentionCached: "Composed in f32. Generation is not what the device is for.",
	npu.CacheWrite:      "Composed: the whole cache is rewritten. A position beyond the cache writes nothing.",
	npu.SwiGLU:          "The fused operator wants gate and up as one tensor. silu(gate) is rounded to the type of activations.",
	npu.SwiGLUBwd:       "dy·up and silu(gate) are rounded to the type of activations.",
	npu.SGD:             "Composed: hyperparameters are device memory, so a launch is prepared once and used in every step.",
	npu.AdamW: "ApplyAdamWV2 takes hyperparameters from the host, so it is prepared anew in every step, and it computes 1-beta^t itself (on an NPU perhaps " +
		"with fewer digits than the fake: not tested). It makes 7 passes over memory; scaling the gradient, which is left out where the scale is 1, makes 2 " +
		"more. Without the operator, composed: 19 calls that make 24 passes. Coupled decay is always composed.",
	npu.SumSq: "The norm is computed in f32 and squared. Two elements in f64 are added on the device's AI CPU.",
	npu.LARS:  "Composed.",

	npu.LAMBMoments: "Composed. Norms are computed in f32 and squared.", npu.LAMB: "Composed. The step is computed again instead of being kept.",
	npu.EMA: "Composed of two calls, 5 passes over memory.",
}

// Note says where the lowering of a kind differs from what package npu/ref computes, "" where it does not.
func Note(kind string) string { return notes[kind] }
