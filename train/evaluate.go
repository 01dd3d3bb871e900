package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
)

// Evaluate runs the held-out samples once through the weights that the configuration starts from (InitFrom, or a checkpoint to resume), without
// training or saving. It returns the mean "loss", the metrics, and "items", the number of items. Call it instead of Run, on all ranks.
func (t *Trainer) Evaluate(ctx context.Context) (map[string]float64, error) {
	return t.evaluateOnce(ctx)
}

func (t *Trainer) evaluateOnce(ctx context.Context) (out map[string]float64, err error) {
	if t.cfg.Eval == nil {
		return nil, fmt.Errorf("train: there are no held-out samples to evaluate\nhint: use train.WithEval")
	}
	if err := t.use(); err != nil {
		return nil, err
	}
	defer func() { err = t.finish(err) }()
	t.evaluating, t.cfg.Optim.EMA = true, optim.EMA{} // the model file has the average
	err = t.open(t.risk(ctx))
	if t.commit() && err != nil { // whatever the error: the request caused it, here or on another rank
		return nil, &StopError{Evaluation: true, Err: err}
	}
	if err != nil {
		return nil, err
	}
	out, stop, err := t.evaluate(ctx)
	if err == nil && stop {
		return nil, &StopError{Evaluation: true}
	}
	return out, err
}

// perplexity is the name of the exponential of the mean loss, if the loss is a negative log-likelihood.
const perplexity = "perplexity"

// evalError is a failure of an evaluation that all ranks know of at the same point: the training itself is sound and can still be saved.
type evalError struct{ error }

func (e *evalError) Unwrap() error { return e.error }

// evaluate runs the held-out samples once, each exactly once over all ranks, and divides sums by counts. A batch that is short, or empty on a rank
// that has no samples left, is filled with labels that are ignored. stop reports whether a stop was requested meanwhile; out is then nil.
func (t *Trainer) evaluate(ctx context.Context) (out map[string]float64, stop bool, err error) {
	begin := time.Now()
	if err := t.held.Seek(data.State{}); err != nil {
		return nil, false, err
	}
	if err := t.shareStatistics(ctx); err != nil {
		return nil, false, err
	}
	waiting := t.risk(ctx)
	defer func() {
		if t.commit() && err == nil {
			err = t.computeAgain(ctx)
		}
	}()
	mine := held{sums: &t.eval.mine}
	mine.reset()
	for {
		b, failed := t.held.Next(waiting)
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed == nil {
			failed = t.evalBatch(ctx, b, &mine)
		} else if t.abandoned() {
			failed = nil
		}
		if failed != nil {
			failed = loading(fmt.Errorf("train: rank %d: evaluation after step %d: %w", t.comm.Rank(), t.step, failed))
		}
		// All ranks have the same number of batches, so they can also stop, or fail, together.
		v, err := t.eng.Agree(ctx, ddp.Vote{Stop: t.stop.Load(), Failed: failed != nil})
		switch {
		case err != nil:
			return nil, false, errors.Join(failed, err)
		case len(v.Failed) > 0:
			return nil, false, t.failTogether(ctx, v.Failed, failed)
		case len(v.Stop) > 0:
			return nil, true, nil
		}
	}
	if out, err = t.evalResult(ctx, &mine); err != nil {
		return nil, false, err
	}
	if t.each != nil {
		if err := t.gatherSamples(ctx); err != nil {
			return nil, false, err
		}
	}
	t.lastEv, t.lastAll, t.evaluated, t.owed = out, t.eval.values, t.step, false
	best := !t.evaluating && t.judge(out) && t.cfg.Monitor.acts()
	t.emitEval(out, best, time.Since(begin))
	return out, false, nil
}

// held is the result of this rank's share of the held-out samples.
type held struct {
	*sums
	bad []int // samples of the first batch whose loss or metrics are not finite
}

// evalResult combines the sums of all ranks.
func (t *Trainer) evalResult(ctx context.Context, mine *held) (map[string]float64, error) {
	v, err := t.eng.Agree(ctx, ddp.Vote{Count: mine.count, LossSum: mine.loss, Sums: mine.metrics, NonFinite: mine.bad != nil})
	if err != nil {
		return nil, err
	}
	place := fmt.Sprintf("train: rank %d: evaluation after step %d", t.comm.Rank(), t.step)
	if len(v.NonFinite) > 0 {
		samples := ""
		if mine.bad != nil {
			samples = fmt.Sprintf("; first seen in the batch of samples %v", mine.bad)
		}
		hint := "lower the learning rate, lengthen the warm-up, limit the gradient norm, or look at the samples"
		if t.evaluating {
			place, hint = fmt.Sprintf("train: rank %d: evaluation", t.comm.Rank()), "evaluate an earlier checkpoint, or look at the samples"
		}
		err := fmt.Errorf("%s: the loss or a metric on %s is not finite on ranks %v%s\nhint: %s", place, t.cfg.Eval.Name(), v.NonFinite, samples, hint)
		if mine.bad == nil {
			err = launch.WithBlame(err, v.NonFinite...)
		}
		return nil, &evalError{launch.WithCode(launch.ExitNumerics, err)}
	}
	if v.Count == 0 {
		return nil, &evalError{fmt.Errorf("%s: no item of %s counts", place, t.cfg.Eval.Name())}
	}
	err = t.eval.report(v.LossSum/t.eval.net.divisor(v), v.Count, v.Sums)
	if err == nil {
		err = t.canJudge(t.eval.values)
	}
	if err != nil { // the same on all ranks
		return nil, &evalError{fmt.Errorf("%s: %w", place, err)}
	}
	return t.eval.numbers(), nil
}

// failTogether ends an evaluation on all ranks with the error of the first rank that failed.
func (t *Trainer) failTogether(ctx context.Context, ranks []int, mine error) error {
	reason, err := t.reason(ctx, ranks[0], mine)
	if err != nil {
		return errors.Join(mine, err)
	}
	if mine == nil {
		mine = launch.WithBlame(reason, ranks...)
	}
	return &evalError{mine}
}

func (t *Trainer) evalBatch(ctx context.Context, b *data.Batch, to *held) error {
	defer b.Release()
	p := t.eval
	if b.Valid == 0 {
		return nil // this rank has no samples left; others still do
	}
	if err := p.whole(b); err != nil {
		return err
	}
	if err := p.within(b, t.cfg.Eval); err != nil {
		return err
	}
	if err := p.copyIn(t.stream, b); err != nil {
		return err
	}
	err := p.prog.Run(t.stream, false, func(group int) error {
		if group != graph.Forward {
			return nil
		}
		if t.each != nil {
			if err := t.stream.CopyOut(t.each.host, t.each.at); err != nil {
				return err
			}
		}
		return p.copyOut(t.stream, 0)
	})
	if err != nil {
		return err
	}
	if err := t.stream.Sync(ctx); err != nil { // host waits for device: sums of the batch
		return err
	}
	p.add(to.sums, 0, b.Valid)
	if t.each != nil {
		t.each.add(b)
	}
	if to.bad == nil && !to.finite() {
		to.bad = slices.DeleteFunc(slices.Clone(b.Indices), func(i int) bool { return i < 0 })
	}
	return nil
}

// note adds the evaluation to the checkpoint of its step, so that a run that resumes from there need not repeat it.
func (t *Trainer) note(ctx context.Context) {
	if t.comm.Rank() != 0 || t.saved != t.step || t.evaluated != t.step {
		return
	}
	defer t.onDisk("adding the evaluation to its checkpoint")()
	if err := t.saver.Evaluated(ctx, t.savedName, t.lastEv, t.eval.keep()); err != nil {
		slog.Warn("the evaluation could not be added to the checkpoint; a run that resumes from there repeats it", "reason", err)
	}
}

// keep ends a run whose evaluation failed: it saves the step that was evaluated, unless its checkpoint already exists. The checkpoint records that
// the evaluation is still due, so the next run begins with it.
func (t *Trainer) keep(ctx context.Context, failed error) error {
	var all *evalError
	if t.saver == nil || !errors.As(failed, &all) { // an error of one rank only: the others do not get here
		return failed
	}
	if t.saved != t.step {
		if err := t.save(ctx, true); err != nil {
			return errors.Join(failed, err)
		}
	}
	return fmt.Errorf("%w\nhint: run the same command to repeat the evaluation; nothing is lost: the checkpoint of step %d is in %s",
		failed, t.step, t.saver.Root())
}
