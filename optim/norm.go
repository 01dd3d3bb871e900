package optim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// GradNorm is the result of one pass over the gradients. If ranks hold different gradients (shards), sum SumSq and NonFinite over
// them; after an all-reduce every rank already has the same.
type GradNorm struct {
	SumSq     float64 // sum of squares of the gradients as they lie in memory, in float64: half precision would overflow
	NonFinite int64   // elements that are infinite or not a number
}

// Finite reports whether every gradient and their norm are finite.
func (n GradNorm) Finite() bool {
	return n.NonFinite == 0 && !math.IsInf(n.SumSq, 0) && !math.IsNaN(n.SumSq)
}

// L2 is the norm of the gradients times gradScale, the number to log and to clip by. It is NaN when an element is not finite.
func (n GradNorm) L2(gradScale float64) float64 {
	if n.NonFinite > 0 {
		return math.NaN()
	}
	return math.Sqrt(n.SumSq) * math.Abs(gradScale)
}

// ClipCoef is what the gradient scale is to be multiplied by so that the norm does not exceed limit:
// min(1, limit/(norm+1e-6)), as PyTorch's clip_grad_norm_. A limit of 0 or below means no limit. Clipping this way costs no
// further pass over memory. norm must be finite; the scaler skips steps in which it is not.
func ClipCoef(norm, limit float64) float64 {
	if limit <= 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}

// Measure enqueues one pass over all gradients; Norm has its result once the stream is synchronised.
func (o *Optimizer) Measure(s npu.Stream) error {
	if err := o.BeginMeasure(s); err != nil {
		return err
	}
	for i := range o.segs {
		if err := o.MeasureSegment(s, i); err != nil {
			return err
		}
	}
	return o.EndMeasure(s)
}

// BeginMeasure, MeasureSegment and EndMeasure are Measure in parts, so that a segment can be measured while its gradients are still
// in the cache. The order of the segments must be the same on every rank and in every step, or the last bit of the sum may differ.
func (o *Optimizer) BeginMeasure(s npu.Stream) error {
	if err := s.CopyIn(o.norm, o.zeros[:16]); err != nil {
		return fmt.Errorf("optim: gradient norm: %w", err)
	}
	return nil
}

// MeasureSegment adds one segment. Allocates nothing.
func (o *Optimizer) MeasureSegment(s npu.Stream, i int) error {
	if err := s.Run(o.measures[i]); err != nil {
		return fmt.Errorf("optim: gradient norm of segment %d (%s): %w", i, o.segs[i].Name, err)
	}
	return nil
}

// EndMeasure enqueues the copy of the result to the host.
func (o *Optimizer) EndMeasure(s npu.Stream) error {
	if err := s.CopyOut(o.normHost, o.norm); err != nil {
		return fmt.Errorf("optim: gradient norm: %w", err)
	}
	return nil
}

// Norm returns the result of the last Measure. It is valid once the stream is synchronised.
func (o *Optimizer) Norm() GradNorm {
	count := math.Float64frombits(binary.NativeEndian.Uint64(o.normHost[8:]))
	return GradNorm{
		SumSq:     math.Float64frombits(binary.NativeEndian.Uint64(o.normHost)),
		NonFinite: int64(count),
	}
}
