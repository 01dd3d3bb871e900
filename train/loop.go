package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
)

// ErrStopped is in the chain of what Run returns when it ended on request, before the end, with its state saved. Its exit code is 75.
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
	defer func() { err = t.finish(err) }()
	if err := t.open(ctx); err != nil {
		return res, err
	}
	t.emitStart()
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

		if t.due(t.cfg.CheckEvery) {
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
		case stop && t.step < t.total:
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
	if res.Steps == 0 { // a checkpoint of the last step
		res.Steps, res.Eval = t.step, t.lastEv
	}
	return res, nil
}

// due says whether something that happens every n steps happens now.
func (t *Trainer) due(n int) bool { return n > 0 && t.step%n == 0 }

func (t *Trainer) evalDue() bool {
	switch {
	case t.eval == nil:
		return false
	case t.step == t.total:
		return true
	case t.cfg.EvalEvery < 0:
		return t.due(t.perEpoch)
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
