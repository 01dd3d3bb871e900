package recipes

import "math"

// PeakLR returns the learning rate after the warm-up for a global batch.
func (o *Optim) PeakLR(globalBatch int) float64 {
	x := float64(globalBatch) / float64(max(1, o.LRBatch))
	switch o.LRScaling {
	case "linear":
		return o.LR * x
	case "sqrt":
		return o.LR * math.Sqrt(x)
	}
	return o.LR
}
