package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
)

// ErrStopped is what Run returns when it ended on request, before the end, with its state saved where there is a directory for that. Its exit code is 75.
var ErrStopped = launch.WithCode(launch.ExitStopped, fmt.Errorf("stopped on request"))

// Run trains to the end, or until Stop or an error. On one screen:
//
//	open      device, model, plan, buckets, memory, weights (new, given, or those of a checkpoint), data
//	step      micro-batches forward and backward while buckets are reduced; one vote; one update
//	evaluate  when due: held-out samples, each exactly once over all ranks
//	save      when due, at the end, and when somebody asked to stop
//
// The error of a run that was stopped is ErrStopped; any other is tried to be told to the other ranks before Run returns.
func (t *Trainer) Run(ctx context.Context) (res Result, err error) {
	if err := t.use(); err != nil {
		return res, err
	}
	defer func() { err = t.finish(err) }()
	if err := t.open(ctx); err != nil {
		return res, err
	}
	t.emitStart()
	if t.step >= t.total {
		return t.already(ctx)
	}
	for t.step < t.total {
		r, err := t.trainStep(ctx)
		if err != nil {
			return res, err
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
		stop := r.stop
		if !stop && t.evalDue() {
			if res.Eval, stop, err = t.evaluate(ctx); err != nil {
				return res, err
			}
		}
		switch {
		case stop && !t.complete():
			res.Stopped = true
			if err := t.save(ctx, true); err != nil {
				return res, err
			}
			return res, ErrStopped
		case t.step == t.total, t.due(t.cfg.SaveEvery):
			if err := t.save(ctx, t.step == t.total); err != nil {
				return res, err
			}
		}
	}
	return res, nil
}

// complete says whether nothing is left to do: a run that was stopped in its last step still lacks its evaluation.
func (t *Trainer) complete() bool {
	return t.step >= t.total && (t.eval == nil || t.evaluated == t.step)
}

// already ends a run that went on from the checkpoint of its last step: only the evaluation may be missing.
func (t *Trainer) already(ctx context.Context) (Result, error) {
	res := Result{Steps: t.step, Eval: t.lastEv}
	if t.complete() {
		return res, nil
	}
	var err error
	if res.Eval, res.Stopped, err = t.evaluate(ctx); err == nil && res.Stopped {
		err = ErrStopped
	}
	return res, err
}

// use lets Run or Evaluate be called once.
func (t *Trainer) use() error {
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
	if err != nil && err != ErrStopped && t.comm != nil {
		t.comm.Abort(err)
	}
	t.emitEnd(err)
	cerr := t.Close()
	if t.bus != nil {
		cerr = errors.Join(cerr, t.bus.Close())
	}
	if err == nil && cerr != nil {
		err = fmt.Errorf("train: closing: %w", cerr)
	}
	return err
}
