package train

import (
	"fmt"
	"strconv"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// progress is the length of a run and its position. The position of a run measured in epochs is a place in the data; its number of steps says nothing
// about that once ranks, batch, accumulation or the amount of data have changed.
type progress struct {
	whole int // steps of the whole run under the present division of the data
	total int // number of the last step: steps done plus steps left
	shift int // added to a step to find its place in the schedule, which is made for whole
}

// newProgress is the progress of a new run. A length in steps counts updates of any batch size.
func newProgress(s data.Sampler, accumulate, steps int, epochs float64) progress {
	whole := steps
	if whole == 0 {
		whole = max(1, int(epochs*float64(s.Batches())/float64(accumulate)+0.5))
	}
	return progress{whole: whole, total: whole}
}

// from is the progress of a run in epochs that resumes after step at a place in the data. The rest of the data is divided anew; the schedule
// continues at the same fraction of the run. If the division has not changed since the start, nothing changes.
func (p progress) from(s data.Sampler, at data.State, accumulate, step int) progress {
	batches := s.Batches()
	done := at.Epoch*batches + batches - s.BatchesFrom(at.Consumed)
	asIf := (2*done + accumulate) / (2 * accumulate) // steps of the present division up to here, rounded
	return progress{whole: p.whole, total: step + max(0, p.whole-asIf), shift: asIf - step}
}

// fitted maps a position to a data set of another size: the same fraction of the same epoch. If the old size is unknown, the count is kept as far as
// possible.
func fitted(at data.State, was, is int) data.State {
	switch {
	case was > 0 && was != is:
		at.Consumed = at.Consumed * int64(is) / int64(was)
	case at.Consumed > int64(is):
		at.Consumed = int64(is)
	}
	return at
}

// seek moves to the position of a checkpoint and recomputes what is left.
func (t *Trainer) seek(st checkpoint.State, at data.State) error {
	t.step, t.samples = int(st.Step), st.Samples
	if t.evaluating {
		return nil
	}
	at = fitted(at, int(st.DataSamples), t.cfg.Data.Len())
	if err := t.loader.Seek(at); err != nil {
		return err
	}
	t.at = at
	if t.cfg.Steps == 0 {
		t.progress = t.from(t.loader.Sampler(), at, t.cfg.Accumulate, t.step)
	}
	return nil
}

// lr is the learning rate of the current step. The schedule counts updates: a skipped step does not advance it.
func (t *Trainer) lr() float64 {
	return t.sched.LR(max(0, t.step+t.shift-int(t.scaler.State().Skipped))) * t.lowered()
}

// found describes in one line where a resumed run stands, what changed, and what is left.
func (t *Trainer) found(st checkpoint.State) string {
	out := fmt.Sprintf("resumed at step %d of %d", t.step, t.total)
	if t.cfg.Steps == 0 {
		out = fmt.Sprintf("resumed at %s of %s epochs", short(float64(t.at.Epoch)+float64(t.at.Consumed)/float64(t.cfg.Data.Len())), short(t.cfg.Epochs))
	}
	if was, is := st.World*st.MicroBatch*st.Accumulation, t.globalBatch(); was != is {
		out += fmt.Sprintf("; batch %d -> %d", was, is)
	}
	if was, is := int(st.DataSamples), t.cfg.Data.Len(); was > 0 && was != is {
		out += fmt.Sprintf("; data %d -> %d samples, in a different order", was, is)
	}
	left := max(0, t.total-t.step)
	if left == 0 {
		return out + ": the training is done"
	}
	if left == 1 {
		return out + ": 1 step left"
	}
	return out + fmt.Sprintf(": %d steps left", left)
}

// globalBatch is the number of samples per step over all ranks.
func (t *Trainer) globalBatch() int { return t.cfg.Batch * t.cfg.Accumulate * t.comm.Size() }

// short formats v with at most two decimals.
func short(v float64) string { return strconv.FormatFloat(float64(int64(v*100+0.5))/100, 'f', -1, 64) }
