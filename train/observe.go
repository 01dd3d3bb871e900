package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StepView is what Config.OnStep sees of the run after a step. It is valid until OnStep returns, on the goroutine that called it.
type StepView struct {
	Step, Total int     // steps done, and those of the whole run
	Loss        float64 // mean over the items of all ranks
	LR          float64
	GradNorm    float64            // before clipping; NaN: not measured
	Skipped     bool               // gradients were not finite: nothing was updated
	Metrics     map[string]float64 // results that are numbers, except the loss

	t *Trainer
}

// Metric is a result of the step by name, over all ranks: "loss", "items", one of Outputs.Metrics (a mean), Sums (a total) or Derived. Its values are valid
// until OnStep returns.
func (v *StepView) Metric(name string) (Tensor, error) {
	all := v.t.train.values
	if x, ok := all[name]; ok {
		return x, nil
	}
	return Tensor{}, fmt.Errorf("train: step %d: there is no metric %q\nhint: there are %s", v.Step, name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// Names lists the parameters and running statistics that Weights can read.
func (v *StepView) Names() []string {
	var names []string
	for _, x := range v.t.model() {
		names = append(names, x.name)
	}
	return names
}

// Weights copies a parameter or a running statistic of this rank, in row-major order. Weights are equal on all ranks; running statistics are this rank's own.
func (v *StepView) Weights(ctx context.Context, name string) ([]float32, error) {
	model := v.t.model()
	i := slices.IndexFunc(model, func(x tensor) bool { return x.name == name })
	if i < 0 {
		return nil, fmt.Errorf("train: step %d: the model has no parameter %q\nhint: StepView.Names lists them", v.Step, name)
	}
	out := make([]float32, model[i].desc.Shape.Elems())
	return out, v.t.mover.Out(ctx, floatBytes(out), model[i].at, model[i].desc)
}

// Save writes a checkpoint of this step, unless there is one. All ranks must call it after the same step; a rank that does not is reported as doing
// something else. A full disk is a warning, as for every checkpoint during a run.
func (v *StepView) Save(ctx context.Context) error {
	if v.t.saver == nil {
		return fmt.Errorf("train: step %d: there is no directory to save to\nhint: use train.WithCheckpoints", v.Step)
	}
	if v.t.saved == v.t.step {
		return nil
	}
	return v.t.save(ctx, false)
}

// Stop asks all ranks to end after the next step, with a checkpoint; one rank may ask for all.
func (v *StepView) Stop() { v.t.Stop() }

// observe shows a step to Config.OnStep, whose error ends the run.
func (t *Trainer) observe(ctx context.Context, r *report) error {
	if t.afterStep != nil {
		t.afterStep(t.step)
	}
	if t.cfg.OnStep == nil {
		return nil
	}
	v := &StepView{Step: t.step, Total: t.total, Loss: r.loss, LR: r.lr, GradNorm: r.norm, Skipped: r.skipped, Metrics: map[string]float64{}, t: t}
	for _, name := range t.train.scalars {
		v.Metrics[name] = t.train.values[name].Item()
	}
	if err := t.cfg.OnStep(ctx, v); err != nil {
		return fmt.Errorf("train: rank %d step %d: OnStep: %w", t.comm.Rank(), t.step, err)
	}
	return nil
}
