package roofline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// near is the part of the bound from which no reason is needed.
const near = 0.85

// reason names what is known about the distance of a kind from its bound; "" where it is small, or nothing is known.
func reason(g *Group, l npu.Limits) string {
	has := func(part string) bool {
		return slices.ContainsFunc(g.Impls, func(s string) bool { return strings.Contains(s, part) })
	}
	ratio := g.Ratio()
	each := time.Duration(0)
	if g.Count > 0 {
		each = g.Took / time.Duration(g.Count)
	}
	switch {
	case ratio > 1 && g.By == Memory:
		return "faster than memory: a part of it was in a cache from the kernel before"
	case ratio >= near:
		return ""
	case l.Region > 0 && each < 8*l.Region && l.Threads > 1:
		return fmt.Sprintf("short: a launch takes %v, of which starting %d threads %v", short(each), l.Threads, short(l.Region))
	case each > 0 && each < 2*time.Microsecond:
		return "short: hardly more than the call"
	case has("go:") || has("dnnl:ref"):
		return "plain loops: there is no fast kernel for this op on this processor"
	case has("wino"):
		return "Winograd: a quarter of the products that are counted, or 4/9 of them, and transforms, which wait for memory"
	}
	for _, known := range reasons {
		if g.Kind == known.kind || strings.HasPrefix(g.Kind, known.kind+" ") {
			return known.why
		}
	}
	return ""
}

// short rounds a short time.
func short(d time.Duration) time.Duration {
	if d < 10*time.Microsecond {
		return d.Round(10 * time.Nanosecond)
	}
	return d.Round(time.Microsecond)
}

// reasons are what profiles of these kernels have shown, by kind; the first that matches counts.
var reasons = []struct{ kind, why string }{
	{npu.Conv2D, "the library's kernels: 85 to 95 % of the peak for wide layers, less for the first one (3 channels) and strides; 1x1 in bf16 waits for memory"},
	{npu.Conv2DBwdData, "as forward; with a stride, most products are with zeros that the kernel must skip"},
	{npu.Conv2DBwdWeights, "sums over pictures and pixels: the kernel turns its tiles first, and threads add up their parts"},
	{npu.MatMul + " dW", "both factors are read along their short side: the kernel turns tiles first"},
	{npu.MatMul, "narrow products: tiles at the edges, and packing of factors that are used once"},
	{npu.LinearCrossEntropy, "exponentials of all logits, beside the products"},
	{npu.LinearCrossEntropyGrad, "exponentials of all logits, beside the products"},
	{npu.LinearCrossEntropyBwd, "exponentials of all logits, beside the products"},
	{npu.Attention, "exponentials of all scores, and short products (the width of a head)"},
	{npu.AttentionBwd, "scores and exponentials a second time, and short products (the width of a head)"},
	{npu.BatchNorm, "x is read twice: statistics are needed before the first output"},
	{npu.BatchNormBwd, "dy and x are read twice: sums are needed before the first output"},
	{npu.RMSNorm, "a row is read twice, from the cache"},
	{npu.RMSNormBwd, "rows are read twice, and every thread sums dw for itself"},
	{npu.LayerNorm, "a row is read three times, from the cache"},
	{npu.LayerNormBwd, "rows are read twice, and every 32 rows have sums of dw and db of their own"},
	{npu.Gelu, "an exponential and a polynomial: some forty instructions an element"},
	{npu.GeluBwd, "an exponential and a polynomial: some forty instructions an element"},
	{npu.Softmax, "exponentials: some twenty instructions an element"},
	{npu.LogSoftmax, "exponentials: some twenty instructions an element"},
	{npu.CrossEntropy, "exponentials: some twenty instructions an element"},
	{npu.CrossEntropyBwd, "exponentials: some twenty instructions an element"},
	{npu.SwiGLU, "exponentials and divisions: some thirty instructions an element"},
	{npu.SwiGLUBwd, "exponentials and divisions: some thirty instructions an element"},
	{npu.Rope, "two pairs of rows a head, short ones; in place"},
	{npu.Embedding, "rows lie anywhere in the table"},
	{npu.EmbeddingBwd, "rows lie anywhere in the table, and equal ids must be summed in order"},
	{npu.MaxPool, "windows overlap: comparisons, and an index for each output"},
	{npu.MaxPoolBwd, "scatters to places that an index names"},
	{npu.Convert, "writes elsewhere than it reads: a line is read before it is written; short rows of blocks"},
	{npu.Transpose, "strides: a line is used in parts"},
	{npu.Dropout, "a random number for each element"},
	{npu.SumSq, "sums of blocks in float64, in order"},
	{npu.AdamW, "seven streams, and a division and a square root an element"},
	{npu.SGD, "five streams at once"},
}
