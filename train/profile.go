package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Profiled is a step whose kernels were timed.
type Profiled struct {
	Took    time.Duration // the whole step
	Kernels []npu.Sample  // in the order in which they ran, those of the optimizer too
}

// Profiler is what Profile calls, on all ranks. Nothing runs on the device meanwhile.
type Profiler interface {
	// Ready is called once before the first step, with the device and the stream that computes.
	Ready(ctx context.Context, dev npu.Device, s npu.Stream) error
	// Before is called before every step that counts.
	Before(ctx context.Context) error
	// Step is called after it. The launches of the kernels are valid until it returns.
	Step(p Profiled) error
}

// profileWarm is how many steps run before the first one that counts: they touch all memory.
const profileWarm = 1

// Profile trains for some steps, as Run does, and times every kernel. It evaluates nothing and saves nothing, and the weights are lost.
func (t *Trainer) Profile(ctx context.Context, steps int, p Profiler) (err error) {
	if err := t.use(); err != nil {
		return err
	}
	defer func() { err = t.finish(err) }()
	if t.cfg.SaveDir != "" || t.cfg.Eval != nil {
		return errors.New("train: a profile saves and evaluates nothing: leave SaveDir and Eval empty")
	}
	stop, err := t.begin(ctx)
	if err != nil || stop {
		return errors.Join(err, t.notProfiled(stop))
	}
	if err := p.Ready(ctx, t.dev, t.stream); err != nil {
		return err
	}
	for i := range profileWarm + steps {
		counts := i >= profileWarm
		if counts {
			if err := p.Before(ctx); err != nil {
				return err
			}
			t.stream.Profile(true)
		}
		r, err := t.trainStep(ctx)
		samples := t.stream.Profile(false)
		if err != nil {
			return err
		}
		if r.stop || r.abandoned {
			return t.notProfiled(true)
		}
		if !counts {
			continue
		}
		if err := p.Step(Profiled{Took: r.total, Kernels: samples}); err != nil {
			return err
		}
	}
	return nil
}

// notProfiled is the error of a profile that was asked to stop.
func (t *Trainer) notProfiled(stop bool) error {
	if !stop {
		return nil
	}
	e := t.stopError()
	e.Saved, e.Err = false, fmt.Errorf("train: the profile was stopped after %d steps", t.step)
	return e
}
