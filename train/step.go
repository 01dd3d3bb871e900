package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/train/data"
)

// report describes one step.
type report struct {
	loss, count float64 // over all ranks
	lr, norm    float64 // norm NaN: not measured
	scale       float64 // of the loss
	skipped     bool
	stop        bool
	abandoned   bool // it has no lasting effect
	total       time.Duration
	data        time.Duration
	compute     time.Duration
	exposed     time.Duration
	busy        time.Duration
	comm        ddp.StepStats
}

// trainStep does one optimizer step: micro-batches forward and backward with overlapped reduction, one vote, one update. Everything is enqueued on
// one stream; the host waits only at the marked places.
func (t *Trainer) trainStep(ctx context.Context) (r report, err error) {
	begin := time.Now()
	r.lr, r.norm, r.scale = t.lr(), math.NaN(), t.scaler.Scale()
	t.before = t.at.Epoch
	t.eng.LossScale(r.scale)
	place := t.at
	if err := t.store.remember(t.stream); err != nil {
		return r, err
	}
	waiting := t.risk(ctx)
	if err := t.stream.Record(t.marks.begin); err != nil {
		return r, err
	}
	for m := 0; m < t.cfg.Accumulate; m++ {
		if t.abandoned() {
			m = t.cfg.Accumulate - 1 // the engine must see the last one before the ranks can agree
		}
		if err := t.microStep(ctx, waiting, m, &r); err != nil {
			return r, err
		}
	}
	t.reached(enqueued)
	verdict, err := t.vote(ctx, &r, begin)
	if err != nil {
		return r, err
	}
	if err := t.update(ctx, &r, verdict); err != nil {
		return r, err
	}
	t.settled(&r)
	if r.abandoned {
		return r, t.undo(ctx, place)
	}
	if err := t.stream.Record(t.marks.end); err != nil {
		return r, err
	}
	if err := t.stream.Sync(ctx); err != nil { // host waits for device: end of the step
		return r, t.where(err)
	}
	t.release()
	r.compute, r.exposed, r.busy = t.marks.times()
	r.total = time.Since(begin)
	t.step++
	t.samples += int64(t.globalBatch())
	return r, nil
}

// stage is a place within a step where a test may request something.
type stage int

const (
	enqueued stage = iota
	voted
	reduced
)

func (t *Trainer) reached(at stage) {
	if t.within != nil {
		t.within(at)
	}
}

// undo reverts what an abandoned step has changed: running statistics and the position in the data. No update has begun on any rank.
func (t *Trainer) undo(ctx context.Context, place data.State) error {
	t.commit()
	if err := t.computeAgain(ctx); err != nil {
		return err
	}
	t.release()
	t.at, t.gaveUp = place, true
	if err := t.store.recall(t.stream); err != nil {
		return err
	}
	return t.stream.Sync(ctx)
}

// release returns the batches of the step to the loader.
func (t *Trainer) release() {
	for _, b := range t.micro {
		b.Release()
	}
	t.micro = t.micro[:0]
}

// where adds rank and step to a device error.
func (t *Trainer) where(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("train: rank %d step %d: %w", t.comm.Rank(), t.step, err)
}
