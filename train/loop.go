package train

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Run trains to the end, or until Stop or an error. In order:
//
//	open      device, model, plan, buckets, memory, weights (initialised, from a file, or from a checkpoint), data
//	step      micro-batches forward and backward while buckets are reduced; one vote; one update
//	save      when due, at the end, and when a stop was requested
//	evaluate  when due, after the checkpoint, so that a failure here loses nothing: held-out samples, each exactly once over all ranks; the best is kept
//
// A run that was stopped returns a *StopError (errors.Is(err, ErrStopped)); for any other error, Run first tries to notify the other ranks.
func (t *Trainer) Run(ctx context.Context) (res Result, err error) {
	if err := t.use(); err != nil {
		return res, err
	}
	defer func() { res.Early, res.Best, res.Values, err = t.early, t.best, t.Values(), t.finish(err) }()
	t.writes = true
	if res.Stopped, err = t.begin(ctx); err != nil {
		return res, err
	}
	t.emitStart()
	if err := t.keepBest(ctx); err != nil { // a run that was killed may not have come to it
		return res, err
	}
	res.Steps, res.Eval = t.step, t.lastEv
	for {
		if res.Stopped {
			return res, t.stopped(ctx)
		}
		if t.owed { // for the previous step, or for the checkpoint that the run resumed from
			if res.Eval, res.Stopped, err = t.evaluate(ctx); err != nil {
				return res, t.keep(ctx, err)
			}
			if err := t.keepBest(ctx); err != nil {
				return res, err
			}
			t.note(ctx)
			if res.Stopped {
				continue
			}
		}
		if t.step >= t.total {
			return res, nil
		}
		if t.impatient() {
			return res, t.endEarly(ctx)
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
		t.owed = t.evalDue()
		if err := t.observe(ctx, &r); err != nil {
			return res, err
		}
		if t.cfg.CheckEvery > 0 && t.due(t.cfg.CheckEvery) {
			if err := t.eng.CheckState(ctx, t.named()...); err != nil {
				return res, launch.WithCode(launch.ExitInternal, err)
			}
		}
		last := t.step == t.total
		if res.Stopped = r.stop && (t.owed || !last); res.Stopped {
			continue
		}
		if (last || t.due(t.cfg.SaveEvery)) && t.saved != t.step {
			if err := t.save(ctx, last); err != nil {
				return res, err
			}
		}
	}
}

// use lets Run or Evaluate be called once. From then on a closed console does not end the process.
func (t *Trainer) use() error {
	launch.OutliveReaders()
	if t.used.Swap(true) {
		return fmt.Errorf("train: a Trainer can run only once\nhint: make another one with New")
	}
	return nil
}

// due reports whether something that happens every n steps, or every -n epochs, happens now. Epochs are those of the data: with accumulation they
// need not contain a whole number of steps.
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
