package train

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// RawFile holds, in a checkpoint of a run with a moving average (optim.EMA), the weights and running statistics that training continues with. The model
// file then has the average: what was evaluated, and what every program that reads the weights is to use.
const RawFile = "raw.safetensors"

// averagedSegment is the part of the optimizer that averages running statistics, which it does not step; false where there is none.
func (t *Trainer) averagedSegment() (optim.Segment, bool) {
	if !t.cfg.Optim.EMA.On() || t.store.each == 0 {
		return optim.Segment{}, false
	}
	s := optim.Segment{Name: "running statistics", Weight: t.store.states[0], Elems: t.store.each / 4}
	for i, st := range t.train.prog.States() {
		s.Tensors = append(s.Tensors, optim.Tensor{Name: st.Name, Off: (t.store.states[i].Off - t.store.states[0].Off) / 4, Elems: st.Bytes / 4})
	}
	return s, true
}

// averages lists what the average of the model consists of, like model; parameters that are not trained are their own average.
func (t *Trainer) averages() []tensor {
	at := map[string]npu.Ptr{}
	for _, a := range t.opt.Averages() {
		at[a.Param] = a.Ptr
	}
	out := t.model()
	for i := range out {
		if p, ok := at[out[i].name]; ok {
			out[i].at = p
		}
	}
	return out
}

// evaluatedModel lists the weights and statistics that evaluation uses.
func (t *Trainer) evaluatedModel() []tensor {
	if t.opt != nil && t.cfg.Optim.EMA.On() {
		return t.averages()
	}
	return t.model()
}

// statesOf are the running statistics among the tensors of a model.
func (t *Trainer) statesOf(model []tensor) []tensor { return model[len(t.store.weights):] }

// moveStatistics enqueues the step of the averages of running statistics. Call it in a step that is taken, behind its forward passes and Begin.
func (t *Trainer) moveStatistics() error {
	if n := len(t.eng.Buckets()); t.opt.Segments() > n {
		return t.opt.StepSegment(t.stream, n)
	}
	return nil
}

// restoreModel reads the weights of a checkpoint, and their average if it has one and the run keeps one.
func (t *Trainer) restoreModel(ctx context.Context, ck *checkpoint.Checkpoint) error {
	on, raw := t.cfg.Optim.EMA.On(), ck.File(RawFile) != nil
	switch {
	case t.evaluating: // of the average, if there is one
	case raw && on:
		if err := t.read(ctx, ck, checkpoint.ModelFile, t.averages()); err != nil {
			return err
		}
		return t.read(ctx, ck, RawFile, t.model())
	case raw:
		slog.Info("the checkpoint has an average of the weights, which this run does not continue", "file", checkpoint.ModelFile)
		return t.read(ctx, ck, RawFile, t.model())
	case on:
		slog.Info("the checkpoint has no average of the weights: it begins with its weights")
	}
	return t.read(ctx, ck, checkpoint.ModelFile, t.model())
}

// beginAverage lets the average begin with the present weights and statistics.
func (t *Trainer) beginAverage(ctx context.Context) error {
	if !t.cfg.Optim.EMA.On() {
		return nil
	}
	if err := t.opt.ResetAverages(t.stream); err != nil {
		return err
	}
	if err := t.stream.Sync(ctx); err != nil {
		return fmt.Errorf("train: rank %d: the average of the weights: %w", t.comm.Rank(), err)
	}
	return nil
}

// weightAverages lists the averages that are equal on all ranks, under names of their own: those of weights.
func (t *Trainer) weightAverages() []tensor {
	if !t.cfg.Optim.EMA.On() {
		return nil
	}
	weights, averages := t.model()[:len(t.store.weights)], t.averages()
	var out []tensor
	for i, w := range weights {
		if x := averages[i]; x.at != w.at {
			out = append(out, tensor{"ema/" + x.name, x.at, x.desc})
		}
	}
	return out
}
