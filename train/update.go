package train

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
)

// update handles each bucket as it lands. Usually the optimizer steps it at once, behind whatever the device still computes. It waits for the last
// bucket if all gradients are measured first, for clipping or loss scaling, or if the step may still be abandoned.
func (t *Trainer) update(ctx context.Context, r *report, v ddp.Verdict) (err error) {
	scale := t.usualCount() / (t.train.net.divisor(v) * t.scaler.Scale())
	measure := t.measures()
	hold := len(v.Hold) > 0
	each := func(npu.Stream, int) error { return nil } // also for an abandoned step, whose buckets only keep the collectives in order
	switch {
	case r.abandoned:
	case measure:
		each, err = t.opt.MeasureSegment, t.opt.BeginMeasure(t.stream)
	case !hold:
		each, err = t.opt.StepSegment, t.opt.Begin(t.stream, r.lr, scale)
	}
	if err != nil {
		return err
	}
	if hold && !r.abandoned {
		t.risk(ctx)
	}
	t.reached(voted)
	if err := t.eachBucket(ctx, each); err != nil {
		return err
	}
	t.reached(reduced)
	if r.comm, err = t.eng.Wait(ctx); err != nil || r.abandoned {
		return err
	}
	if hold {
		v, err := t.eng.Agree(ctx, ddp.Vote{Abandon: t.commit()})
		if r.abandoned = len(v.Abandon) > 0; err != nil || r.abandoned {
			return err
		}
	}
	if !measure {
		if err := t.decoded(r.comm.Coded); err != nil {
			return err
		}
	}
	switch {
	case measure:
		return t.measured(ctx, r, v, scale)
	case hold:
		if err := t.opt.Begin(t.stream, r.lr, scale); err != nil {
			return err
		}
		return t.opt.Step(t.stream)
	}
	return t.moveStatistics()
}

// eachBucket enqueues work for each bucket as it lands, in plan order. With a transport that is ordered by events, the stream waits for the reduction,
// and the host does not.
func (t *Trainer) eachBucket(ctx context.Context, each func(npu.Stream, int) error) error {
	if err := t.stream.Record(t.marks.backward); err != nil {
		return err
	}
	for range t.eng.Buckets() {
		b, err := t.nextBucket(ctx)
		if err != nil {
			return err
		}
		k := b.bucket
		if b.after != nil {
			if err := t.stream.Wait(b.after); err != nil {
				return err
			}
		}
		if err := t.stream.Record(t.marks.before[k]); err != nil {
			return err
		}
		if err := each(t.stream, k); err != nil {
			return err
		}
		if err := t.stream.Record(t.marks.after[k]); err != nil {
			return err
		}
	}
	return nil
}

// measured clips the gradients, or skips the step if they are not finite. All ranks hold the same gradients, so all decide the same. A scaled loss that
// is not finite is treated like its gradients, which may be finite all the same.
func (t *Trainer) measured(ctx context.Context, r *report, v ddp.Verdict, scale float64) error {
	if err := t.opt.EndMeasure(t.stream); err != nil {
		return err
	}
	if err := t.stream.Sync(ctx); err != nil { // host waits for device: the norm decides about the update
		return t.where(err)
	}
	n := t.opt.Norm()
	r.norm = n.L2(scale)
	skip, err := t.scaler.Update(!n.Finite() || len(v.NonFinite) > 0)
	switch {
	case err != nil && len(v.NonFinite) > 0:
		st := t.scaler.State()
		return t.nonFinite(ctx, v, fmt.Sprintf(", loss scale %g, after %d skipped steps in a row", st.Scale, st.InARow))
	case err != nil:
		return launch.WithCode(launch.ExitNumerics, fmt.Errorf("train: step %d: %w", t.step, err))
	}
	if r.skipped = skip; skip {
		return t.skip()
	}
	if err := t.opt.Begin(t.stream, r.lr, scale*optim.ClipCoef(r.norm, t.cfg.ClipNorm)); err != nil {
		return err
	}
	return t.opt.Step(t.stream)
}

// skip leaves a step out: only the position in the data moves on. With loss scaling, running statistics are restored too, because activations may have
// overflowed.
func (t *Trainer) skip() error {
	if !t.cfg.scales() {
		return nil
	}
	return t.store.recall(t.stream)
}

// landed is a bucket that holds its sum once after is reached; nil: it does already.
type landed struct {
	bucket int
	after  npu.Event
}

// nextBucket waits for the next bucket in plan order.
func (t *Trainer) nextBucket(ctx context.Context) (landed, error) {
	select {
	case b := <-t.landed:
		return b, nil
	case <-t.eng.Broken():
		return landed{}, t.eng.Err()
	case <-ctx.Done():
		return landed{}, fmt.Errorf("train: rank %d step %d: waiting for gradients: %w", t.comm.Rank(), t.step, context.Cause(ctx))
	}
}
