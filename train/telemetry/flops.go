package telemetry

import "fmt"

// FLOPs is the arithmetic of training by a named formula, because utilisations by different formulas cannot be compared. A multiply-add counts as
// two.
type FLOPs struct {
	PerItem float64 // per item (sample or token), forward and backward
	Formula string
}

// PlanFLOPs counts what the compiled program does: the sum over its kernels, without the optimizer, and counting recomputed work once.
func PlanFLOPs(perBatch float64, items int) FLOPs {
	return FLOPs{perBatch / float64(max(items, 1)), "sum over the plan's kernels"}
}

// PaLMFLOPs is the formula of appendix B of arXiv 2204.02311: 6N + 12·L·H·Q·T per token, for N parameters without the embedding lookup, L layers, H
// heads of size Q, and T tokens of context.
func PaLMFLOPs(parameters float64, layers, heads, headSize, context int) FLOPs {
	return FLOPs{6*parameters + 12*float64(layers)*float64(heads)*float64(headSize)*float64(context), "PaLM, 6N + 12LHQT"}
}

// MFU is the utilisation of a device that trains itemsPerSecond and can do peak FLOP/s. It is unknown if either is.
func (f FLOPs) MFU(itemsPerSecond Value, peak float64) Value {
	if !itemsPerSecond.OK || !(peak > 0) || !(f.PerItem > 0) {
		return Value{}
	}
	return Known(f.PerItem * itemsPerSecond.X / peak)
}

// Facts explains MFU, for the header of a run.
func (f FLOPs) Facts(peak float64) []Fact {
	out := []Fact{{"flops", fmt.Sprintf("%.4g GFLOP per item (%s)", f.PerItem/1e9, f.Formula)}}
	if peak > 0 {
		return append(out, Fact{"peak", fmt.Sprintf("%.4g TFLOP/s per rank; mfu is relative to it", peak/1e12)})
	}
	return append(out, Fact{"peak", "unknown, so mfu is -"})
}
