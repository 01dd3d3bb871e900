package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
)

// report is what one step was.
type report struct {
	loss, count float64 // over all ranks
	metrics     []float64
	lr, norm    float64 // norm NaN: not measured
	skipped     bool
	stop        bool
	abandoned   bool // nothing of it lasts
	total       time.Duration
	data        time.Duration
	compute     time.Duration
	exposed     time.Duration
	busy        time.Duration
	comm        ddp.StepStats
}

// trainStep does one optimizer step: micro-batches forward and backward, reduction under way meanwhile, one vote, one update.
// Everything is enqueued on one stream; the host waits at the marked places only.
func (t *Trainer) trainStep(ctx context.Context) (r report, err error) {
	begin := time.Now()
	r.lr, r.norm = t.lr(), math.NaN()
	t.before = t.at.Epoch
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
			m = t.cfg.Accumulate - 1 // the engine must have seen the last one before the ranks can agree
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

// stage is a place within a step where a test may ask for something.
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

// undo takes back what an abandoned step has changed: running statistics and the place in the data. No update has begun on any rank.
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

// release gives the batches of the step back to the loader.
func (t *Trainer) release() {
	for _, b := range t.micro {
		b.Release()
	}
	t.micro = t.micro[:0]
}

// take waits for the next batch and enqueues its copies. In a step that is abandoned nobody needs it.
func (t *Trainer) take(ctx context.Context, r *report) error {
	b, err := t.loader.Next(ctx)
	switch {
	case err != nil && t.abandoned():
		return nil
	case err != nil:
		return fmt.Errorf("train: rank %d step %d: %w", t.comm.Rank(), t.step, err)
	}
	r.data += b.Wait
	t.micro, t.valid, t.at = append(t.micro, b), append(t.valid, b.Valid), b.Next
	if err := t.train.whole(b); err != nil {
		return err
	}
	if err := t.train.within(b, t.cfg.Data); err != nil {
		return t.where(err)
	}
	return t.train.copyIn(t.stream, b)
}

// microStep enqueues one micro-batch. Gradients of the last one leave in buckets as they become ready. waiting is the context of waits that Abandon ends.
func (t *Trainer) microStep(ctx, waiting context.Context, m int, r *report) error {
	if m == 0 {
		t.micro, t.valid = t.micro[:0], t.valid[:0]
	}
	if len(t.micro) >= maxHeld {
		if err := t.stream.Sync(ctx); err != nil { // host waits for device: the loader has no further batch to lend
			return t.where(err)
		}
		t.release()
	}
	if err := t.take(waiting, r); err != nil {
		return err
	}
	if err := t.scalars(m); err != nil {
		return err
	}
	if err := t.eng.Begin(int64(t.step), m == t.cfg.Accumulate-1); err != nil {
		return err
	}
	return t.train.prog.Run(t.stream, m > 0, func(group int) error {
		if group == graph.Forward {
			if err := t.train.copyOut(t.stream, m); err != nil {
				return err
			}
			return t.stream.Record(t.train.ready)
		}
		if m < t.cfg.Accumulate-1 {
			return nil
		}
		if err := t.stream.Record(t.marks.ready[group]); err != nil {
			return err
		}
		return t.eng.ReadyBucket(group, t.marks.ready[group])
	})
}

// maxHeld is how many batches of the loader's ring a step keeps until the device has read them.
const maxHeld = 2

// scalars sets the loss scale and the dropout seed of a micro-batch.
func (t *Trainer) scalars(m int) error {
	if m == 0 && !t.train.scale.IsNil() { // it stays for the whole step, and the copy of one micro-batch may still be pending in the next
		// The loss is a sum; dividing by the usual count keeps gradients of the size that people expect. The exact count comes at the end.
		t.hostScale[0] = float32(t.scaler.Scale() / t.usualCount())
		if err := t.stream.CopyIn(t.train.scale, bytesOf(&t.hostScale[0])); err != nil {
			return err
		}
	}
	if t.train.seed.IsNil() {
		return nil
	}
	for len(t.hostSeed) <= m {
		t.hostSeed = append(t.hostSeed, new(int64))
	}
	// A function of place alone: a resumed run drops the same, and ranks drop differently.
	*t.hostSeed[m] = int64(mix(t.cfg.Seed, uint64(t.step), uint64(m*t.comm.Size()+t.comm.Rank())))
	return t.stream.CopyIn(t.train.seed, bytesOf(t.hostSeed[m]))
}

func bytesOf[T any](p *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// mix hashes three numbers (splitmix64).
func mix(a, b, c uint64) uint64 {
	z := a
	for _, v := range []uint64{b, c} {
		z += 0x9e3779b97f4a7c15 * (v + 1)
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return z
}

// usualCount is the number of items of a step in which every batch is full. It is the same on all ranks.
func (t *Trainer) usualCount() float64 {
	return float64(t.cfg.Batch * t.cfg.Accumulate * t.comm.Size() * t.train.net.items.perSample())
}

// holdAfter is how long the forward passes of a step may take before all updates of the step wait for its last bucket and for a second agreement, so
// that the step can be abandoned until then. Shorter steps are finished, and start to update while gradients are still reduced.
const holdAfter = time.Second

// vote waits for this rank's loss and hears all others: global loss, count and metrics, whether anybody wants to stop or to abandon the step, whether
// any number is not finite. Buckets wait for it, so no weight is changed before all know.
func (t *Trainer) vote(ctx context.Context, r *report, begin time.Time) (ddp.Verdict, error) {
	if err := t.train.ready.Sync(ctx); err != nil { // host waits for device: the forward pass of the last micro-batch
		return ddp.Verdict{}, t.where(err)
	}
	mine := sums{metrics: make([]float64, len(t.train.net.metrics))}
	abandon := t.commit() // until the verdict says whether this step waits for the second agreement
	for m := 0; m < t.cfg.Accumulate && !abandon; m++ {
		t.train.add(&mine, m, t.valid[m])
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
	r.loss, r.count, r.stop = v.LossSum/v.Count, v.Count, len(v.Stop) > 0
	r.metrics = append(r.metrics, v.Sums...)
	for i := range r.metrics {
		r.metrics[i] /= v.Count
	}
	if len(v.NonFinite) > 0 && !t.cfg.Scaler.Dynamic {
		return v, t.nonFinite(ctx, v)
	}
	if v.Count == 0 {
		return v, fmt.Errorf("train: step %d has no item that counts on any rank", t.step)
	}
	return v, nil
}

// update takes each bucket as it lands. Mostly the optimizer steps it at once, behind whatever the device still computes. It waits for the last one
// where all gradients are measured first, for a limit of the norm or for loss scaling, and where the step may still be abandoned.
func (t *Trainer) update(ctx context.Context, r *report, v ddp.Verdict) (err error) {
	scale := t.usualCount() / (v.Count * t.scaler.Scale())
	measure := t.cfg.ClipNorm > 0 || t.cfg.Scaler.Dynamic
	hold := len(v.Hold) > 0
	each := func(npu.Stream, int) error { return nil } // also in an abandoned step, whose buckets only keep the order of collectives
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
	switch {
	case measure:
		return t.measured(ctx, r, scale)
	case hold:
		if err := t.opt.Begin(t.stream, r.lr, scale); err != nil {
			return err
		}
		return t.opt.Step(t.stream)
	}
	return nil
}

// eachBucket enqueues work for each bucket as it lands, in plan order.
func (t *Trainer) eachBucket(ctx context.Context, each func(npu.Stream, int) error) error {
	if err := t.stream.Record(t.marks.backward); err != nil {
		return err
	}
	for range t.eng.Buckets() {
		k, err := t.nextBucket(ctx)
		if err != nil {
			return err
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

// measured clips, or skips the step where gradients are not finite. All ranks hold the same gradients, so all decide the same.
func (t *Trainer) measured(ctx context.Context, r *report, scale float64) error {
	if err := t.opt.EndMeasure(t.stream); err != nil {
		return err
	}
	if err := t.stream.Sync(ctx); err != nil { // host waits for device: the norm decides about the update
		return t.where(err)
	}
	n := t.opt.Norm()
	r.norm = n.L2(scale)
	skip, err := t.scaler.Update(n.NonFinite > 0)
	if err != nil {
		return launch.WithCode(launch.ExitNumerics, fmt.Errorf("train: step %d: %w", t.step, err))
	}
	if r.skipped = skip; skip {
		return nil
	}
	if err := t.opt.Begin(t.stream, r.lr, scale*optim.ClipCoef(r.norm, t.cfg.ClipNorm)); err != nil {
		return err
	}
	return t.opt.Step(t.stream)
}

// nextBucket waits for the next bucket in plan order.
func (t *Trainer) nextBucket(ctx context.Context) (int, error) {
	select {
	case k := <-t.landed:
		return k, nil
	case <-t.eng.Broken():
		return 0, t.eng.Err()
	case <-ctx.Done():
		return 0, fmt.Errorf("train: rank %d step %d: waiting for gradients: %w", t.comm.Rank(), t.step, context.Cause(ctx))
	}
}

// nonFinite ends a run whose loss is no number: who saw it first, on which samples.
func (t *Trainer) nonFinite(ctx context.Context, v ddp.Verdict) error {
	_ = t.stream.Sync(ctx) // the batches are still being read
	place, samples := "", ""
	mine := slices.Contains(v.NonFinite, t.comm.Rank())
	if mine {
		if t.cfg.Accumulate == 1 { // else the inputs of the bad micro-batch are gone
			if at, err := t.train.prog.FirstNonFinite(ctx, t.stream); err == nil && at != "" {
				place = ", first in " + at
			}
		}
		samples = "; samples of this rank:" + t.badSamples()
	}
	err := launch.WithCode(launch.ExitNumerics, fmt.Errorf("train: rank %d step %d: the loss is not finite on ranks %v%s, learning rate %g%s\nhint: the weights are those of the last good checkpoint; lower the learning rate, lengthen the warm-up, limit the gradient norm, or look at the samples",
		t.comm.Rank(), t.step, v.NonFinite, place, t.lr(), samples))
	if !mine {
		err = launch.WithBlame(err, v.NonFinite...)
	}
	return err
}

// badSamples lists the samples of the micro-batches whose loss is not finite.
func (t *Trainer) badSamples() (out string) {
	gone := len(t.valid) - len(t.micro) // batches that went back to the loader within this step
	for m := range t.valid {
		switch v := t.train.value(m, 0); {
		case !math.IsNaN(v) && !math.IsInf(v, 0):
		case m < gone:
			out += fmt.Sprintf(" those of micro-batch %d of %d (no longer at hand)", m+1, len(t.valid))
		default:
			out += fmt.Sprintf(" %v", t.micro[m-gone].Indices)
		}
	}
	return out
}

// where adds rank and step to an error of the device.
func (t *Trainer) where(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("train: rank %d step %d: %w", t.comm.Rank(), t.step, err)
}
