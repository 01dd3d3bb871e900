package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
)

// Run trains to the end, or until Stop or an error. On one screen:
//
//	open      device, model, plan, buckets, memory, weights (new, given, or those of a checkpoint), data
//	step      micro-batches forward and backward while buckets are reduced; one vote; one update
//	save      when due, at the end, and when somebody asked to stop
//	evaluate  when due, after the checkpoint, which a failure here does not cost: held-out samples, each exactly once over all ranks
//
// The error of a run that was stopped is a *StopError (errors.Is(err, ErrStopped)); of any other error Run first tries to notify the other ranks.
func (t *Trainer) Run(ctx context.Context) (res Result, err error) {
	if err := t.use(); err != nil {
		return res, err
	}
	defer func() { err = t.finish(err) }()
	t.writes = true
	if res.Stopped, err = t.begin(ctx); err != nil {
		return res, err
	}
	t.emitStart()
	res.Steps, res.Eval = t.step, t.lastEv
	for {
		if res.Stopped {
			return res, t.stopped(ctx)
		}
		if t.owed { // after the step before, or by the checkpoint that the run resumed from
			if res.Eval, res.Stopped, err = t.evaluate(ctx); err != nil {
				return res, t.keep(ctx, err)
			}
			t.note(ctx)
			if res.Stopped {
				continue
			}
		}
		if t.step >= t.total {
			return res, nil
		}
		r, err := t.trainStep(ctx)
		if err != nil {
			return res, err
		}
		if res.Stopped = r.abandoned; res.Stopped {
			continue
		}
		res.Steps, res.Loss = t.step, r.loss
		t.emitStep(r)
		if t.afterStep != nil {
			t.afterStep(t.step)
		}

		if t.cfg.CheckEvery > 0 && t.due(t.cfg.CheckEvery) {
			if err := t.eng.CheckState(ctx, t.named()...); err != nil {
				return res, launch.WithCode(launch.ExitInternal, err)
			}
		}
		t.owed = t.evalDue()
		last := t.step == t.total
		if res.Stopped = r.stop && (t.owed || !last); res.Stopped {
			continue
		}
		if last || t.due(t.cfg.SaveEvery) {
			if err := t.save(ctx, last); err != nil {
				return res, err
			}
		}
	}
}

// note adds the evaluation to the checkpoint of its step, so that a run that resumes from there need not repeat it.
func (t *Trainer) note(ctx context.Context) {
	if t.comm.Rank() != 0 || t.saved != t.step || t.evaluated != t.step {
		return
	}
	defer t.onDisk("adding the evaluation to its checkpoint")()
	if err := t.saver.Evaluated(ctx, t.savedName, t.lastEv); err != nil {
		slog.Warn("a run that resumes from this checkpoint repeats its evaluation", "reason", err)
	}
}

// begin opens everything. It says whether somebody asked to stop meanwhile, where there is anything to stop.
func (t *Trainer) begin(ctx context.Context) (stop bool, err error) {
	err = t.open(t.risk(ctx))
	if t.commit() && err != nil { // whatever the error is: the request brought it about, here or on another rank
		e := t.stopError()
		e.Step, e.Began, e.Saved, e.Err = 0, 0, false, err
		return false, e
	}
	if err != nil {
		return false, err
	}
	t.first = t.step
	if t.step >= t.total && !t.owed {
		return false, nil
	}
	v, err := t.eng.Agree(ctx, ddp.Vote{Stop: t.stop.Load()})
	return len(v.Stop) > 0, err
}

// keep ends a run whose evaluation failed: it saves the step that was evaluated, unless its checkpoint is there already. The checkpoint says that the
// evaluation is still owed, so the next run begins with it.
func (t *Trainer) keep(ctx context.Context, failed error) error {
	var all *evalError
	if t.saver == nil || !errors.As(failed, &all) { // an error of one rank: the others are not here
		return failed
	}
	if t.saved != t.step {
		if err := t.save(ctx, true); err != nil {
			return errors.Join(failed, err)
		}
	}
	return fmt.Errorf("%w\nhint: the training is kept: the checkpoint of step %d is in %s; the same command runs the evaluation again",
		failed, t.step, t.saver.Root())
}

// use lets Run or Evaluate be called once. From then on a console that nobody reads does not end the process.
func (t *Trainer) use() error {
	launch.OutliveReaders()
	if t.used.Swap(true) {
		return fmt.Errorf("train: a Trainer runs once\nhint: make another one with New")
	}
	return nil
}

// due says whether something that happens every n steps, or every -n epochs, happens now. Epochs are those of the data: with accumulation they need not
// end with a whole number of steps.
func (t *Trainer) due(n int) bool {
	if n < 0 {
		return t.at.Epoch/-n > t.before/-n
	}
	return n > 0 && t.step%n == 0
}

func (t *Trainer) evalDue() bool {
	switch {
	case t.eval == nil:
		return false
	case t.step == t.total:
		return true
	}
	return t.due(t.cfg.EvalEvery)
}

// finish tells the sinks how it ended, and the peers if it ended badly, and releases everything.
func (t *Trainer) finish(err error) error {
	var stop *StopError
	failed := err != nil && !errors.As(err, &stop)
	if failed {
		launch.Report(err) // before the peers hear of it, for they may be gone first
	}
	if t.comm != nil && (failed || stop != nil && stop.Err != nil) { // the peers may still be waiting for this rank
		t.comm.Abort(err)
	}
	t.emitEnd(err)
	cerr := t.Close()
	if t.bus != nil {
		cerr = errors.Join(cerr, launch.WithCode(launch.ExitStorage, t.bus.Close()))
	}
	if err == nil && cerr != nil {
		err = fmt.Errorf("train: closing: %w", cerr)
	}
	return err
}
