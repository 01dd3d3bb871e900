package train

import (
	"context"
	"fmt"
)

// Evaluate runs the held-out samples once through the weights that the configuration starts from (InitFrom, or a checkpoint to resume), without training
// and without saving: the mean "loss", the metrics, and "items", the number of samples. Call it instead of Run, on all ranks.
func (t *Trainer) Evaluate(ctx context.Context) (out map[string]float64, err error) {
	if t.cfg.Eval == nil {
		return nil, fmt.Errorf("train: there are no held-out samples to evaluate\nhint: train.WithEval")
	}
	if err := t.use(); err != nil {
		return nil, err
	}
	defer func() { err = t.finish(err) }()
	t.evaluating = true
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	out, stop, err := t.evaluate(ctx)
	if err == nil && stop {
		return nil, &StopError{Evaluation: true}
	}
	return out, err
}
