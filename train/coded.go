package train

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/telemetry"
)

// settled tells the codec of gradients, if there is one, what became of the step: only a step that changes weights commits what encoding left over. All ranks
// call it with the same value.
func (t *Trainer) settled(r *report) { t.eng.Settle(!r.abandoned && !r.skipped) }

// decoded ends a run without a limit of the gradient norm whose decoded gradients are not finite; with one, the norm finds them. All ranks decode the same
// bytes, so all end here.
func (t *Trainer) decoded(c ddp.Coded) error {
	if !c.NonFinite {
		return nil
	}
	b := t.eng.Buckets()[c.Bucket]
	return launch.WithCode(launch.ExitNumerics, fmt.Errorf(
		"train: rank %d step %d: the gradients in bucket %d (%s) are not finite after %s\n"+
			"hint: lower the learning rate, limit the gradient norm so that such steps are skipped, or set comm.compress = \"none\"; "+
			"checkpoints before this step are good",
		t.comm.Rank(), t.step, c.Bucket, b.Title, t.eng.Codec().Name()))
}

// codedMetrics are the numbers of a step with a codec: how much smaller gradients became, and the part of them that was lost, as a ratio of norms. They are
// those of this rank.
func (t *Trainer) codedMetrics(c ddp.Coded) []telemetry.Metric {
	if c.Sent == 0 {
		return nil
	}
	out := []telemetry.Metric{{Name: "compress_ratio", Value: telemetry.Known(float64(c.Raw) / float64(c.Sent))}}
	if lost := math.Sqrt(c.Lost / c.Norm); !c.NonFinite && c.Norm > 0 && !math.IsInf(lost, 0) && !math.IsNaN(lost) {
		out = append(out, telemetry.Metric{Name: "compress_error", Value: telemetry.Known(lost)})
	}
	return out
}

// warnResidual reports once that encoding leaves more behind than there is: the updates then are those of long ago.
func (t *Trainer) warnResidual(c ddp.Coded) {
	if t.residual || c.NonFinite || !(c.Norm > 0) || !(c.Residual > c.Norm) {
		return
	}
	t.residual = true
	t.emit(telemetry.Warning{Step: int64(t.step), Text: fmt.Sprintf("what %s left out of gradients so far is %.2g times as large as the gradients of this step; "+
		"set comm.compress to f16 or none, or comm.compress_block to a smaller number", t.eng.Codec().Name(), math.Sqrt(c.Residual/c.Norm))})
}
