package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
)

// holdAfter is how long the forward passes of a step may take before all its updates wait for the last bucket and a second agreement, so that the
// step can still be abandoned. Shorter steps are always completed, and updates overlap with reduction.
const holdAfter = time.Second

// vote waits for this rank's loss and combines it with all others: global loss, count and metrics, whether any rank wants to stop or to abandon the
// step, whether any number is not finite. Buckets wait for it, so no weight changes before all ranks know.
func (t *Trainer) vote(ctx context.Context, r *report, begin time.Time) (ddp.Verdict, error) {
	if err := t.train.ready.Sync(ctx); err != nil { // host waits for device: the forward pass of the last micro-batch
		return ddp.Verdict{}, t.where(err)
	}
	mine := &t.train.mine
	mine.reset()
	abandon := t.commit() // until the verdict says whether this step waits for the second agreement
	for m := 0; m < t.cfg.Accumulate && !abandon; m++ {
		t.train.add(mine, m, t.valid[m])
	}
	stop := t.stop.Load()
	v, err := t.eng.Vote(ctx, ddp.Vote{
		Count: mine.count, LossSum: mine.loss, Sums: mine.metrics, Stop: stop, Abandon: abandon, Hold: stop || time.Since(begin) > t.holdAfter,
		NonFinite: math.IsNaN(mine.loss) || math.IsInf(mine.loss, 0),
	})
	if err != nil {
		return v, err
	}
	if r.abandoned = len(v.Abandon) > 0; r.abandoned {
		t.risk(ctx)
		t.Abandon()
		return v, nil
	}
	r.loss, r.count, r.stop = v.LossSum/t.train.net.divisor(v), v.Count, len(v.Stop) > 0
	if len(v.NonFinite) > 0 && !t.cfg.scales() { // otherwise the step is skipped, up to a limit
		return v, t.nonFinite(ctx, v, "")
	}
	if v.Count == 0 {
		return v, fmt.Errorf("train: step %d: no item counts on any rank\nhint: check whether the labels or targets of all samples are marked as ignored", t.step)
	}
	if err := t.train.report(r.loss, v.Count, v.Sums); err != nil {
		return v, t.where(err)
	}
	return v, nil
}

// nonFinite ends a run whose loss is not finite, and reports which rank saw it first, and on which samples. also says what else led to the end.
func (t *Trainer) nonFinite(ctx context.Context, v ddp.Verdict, also string) error {
	_ = t.stream.Sync(ctx) // the batches are still being read
	place, samples := "", ""
	hint := "lower the learning rate, lengthen the warm-up, limit the gradient norm, or look at the samples; checkpoints before this step are good"
	mine := slices.Contains(v.NonFinite, t.comm.Rank())
	if mine {
		if t.cfg.Accumulate == 1 { // otherwise the inputs of the bad micro-batch are gone
			if at, err := t.train.prog.FirstNonFinite(ctx, t.stream); err == nil && at != "" {
				place = ", first in " + at
				if t.step == 0 && strings.HasPrefix(at, "param ") {
					hint = "the initial weights are not finite: use others (model.init_from in a recipe, InitFrom in Go)"
				}
			}
		}
		samples = "; samples of this rank:" + t.badSamples()
	}
	err := launch.WithCode(launch.ExitNumerics, fmt.Errorf(
		"train: rank %d step %d: the loss is not finite on ranks %v%s, learning rate %g%s%s\n"+
			"hint: %s", t.comm.Rank(), t.step, v.NonFinite, place, t.lr(), also, samples, hint))
	if !mine {
		err = launch.WithBlame(err, v.NonFinite...)
	}
	return err
}

// badSamples lists the samples of the micro-batches whose loss is not finite.
func (t *Trainer) badSamples() (out string) {
	gone := len(t.valid) - len(t.micro) // batches returned to the loader within this step
	for m := range t.valid {
		switch v := t.train.value(m, 0); {
		case !math.IsNaN(v) && !math.IsInf(v, 0):
		case m < gone:
			out += fmt.Sprintf(" those of micro-batch %d of %d (no longer available)", m+1, len(t.valid))
		default:
			out += fmt.Sprintf(" %v", t.micro[m-gone].Indices)
		}
	}
	return out
}
