package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
)

// save writes a checkpoint: rank 0 writes, and the others wait for its result. A full disk, or any other storage failure, is a warning: the older
// checkpoints are untouched and training continues. With must it is an error, because no later save will make up for it.
func (t *Trainer) save(ctx context.Context, must bool) error {
	if t.saver == nil {
		if must && t.step < t.total && t.comm.Rank() == 0 {
			slog.Warn("checkpoints have no directory: nothing is saved", "step", t.step)
		}
		return nil
	}
	sets, err := t.gatherSets(ctx)
	if err != nil {
		return err
	}
	owed, err := t.residuals()
	if err != nil {
		return err
	}
	if owed != nil {
		defer owed.close()
	}
	var failed error
	if owed != nil && t.comm.Rank() != 0 {
		if err := owed.send(ctx); err != nil {
			return err
		}
	}
	if t.comm.Rank() == 0 {
		what := fmt.Sprintf("writing the checkpoint of step %d", t.step)
		end, done := t.onDisk(what), launch.Busy(what) // for the other ranks, and for the supervisor
		t.markBest()                                   // before the rotation
		saved, err := t.saver.Save(ctx, t.content(ctx, sets, owed))
		if owed != nil {
			err = errors.Join(err, owed.drain(ctx))
		}
		done()
		end()
		switch {
		case err != nil:
			failed = err
		default:
			t.savedName = saved.Name
			t.emitSaved(saved)
		}
	}
	v, err := t.eng.Agree(ctx, ddp.Vote{Failed: failed != nil, NonFinite: errors.Is(failed, errNotFinite)})
	if err != nil {
		return err
	}
	if len(v.Failed) == 0 {
		t.saved = t.step
		return nil
	}
	if failed == nil {
		failed = launch.WithBlame(fmt.Errorf("train: rank 0 could not write the checkpoint of step %d", t.step), 0)
	}
	if len(v.NonFinite) > 0 {
		return launch.WithCode(launch.ExitNumerics, fmt.Errorf(
			"train: rank %d step %d: the weights are not finite and are not saved: %w\n"+
				"hint: lower the learning rate, lengthen the warm-up, or limit the gradient norm; older checkpoints are good",
			t.comm.Rank(), t.step, failed))
	}
	if errors.Is(failed, dirlock.ErrLost) {
		return launch.WithCode(launch.ExitInUse, failed)
	}
	if must {
		return launch.WithCode(launch.ExitStorage, failed)
	}
	slog.Error("checkpoint failed; older ones are untouched and training continues", "step", t.step, "reason", failed)
	return nil
}

// errNotFinite is why weights are not saved: resuming from them is useless, and saving them might rotate the last good checkpoint away.
var errNotFinite = errors.New("holds a number that is not finite")

// modelSet is one set of weights and statistics, and the file of a checkpoint that it goes to.
type modelSet struct {
	file    string
	tensors []tensor
	statistics
	rank func(rank int, name string) string // names each rank's own statistics
}

// gatherSets collects what a checkpoint holds of the model: its weights, or their average and, behind it, the weights.
func (t *Trainer) gatherSets(ctx context.Context) (sets []modelSet, err error) {
	sets = []modelSet{{file: checkpoint.ModelFile, tensors: t.model(), rank: rankState}}
	if t.cfg.Optim.EMA.On() {
		sets = []modelSet{{file: checkpoint.ModelFile, tensors: t.averages(), rank: rankAverage}, {file: RawFile, tensors: t.model(), rank: rankState}}
	}
	for i := range sets {
		if sets[i].statistics, err = t.gather(ctx, t.statesOf(sets[i].tensors), true); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

func (t *Trainer) content(ctx context.Context, sets []modelSet, owed *residuals) checkpoint.Content {
	place, _ := json.Marshal(t.at)
	st := checkpoint.State{
		DataSamples: int64(t.cfg.Data.Len()), Classes: t.cfg.Data.Classes(),
		Network: t.cfg.describe(),
		Version: Version(), Step: int64(t.step), Epoch: int64(t.at.Epoch), Samples: t.samples, OptimizerSteps: t.opt.Count(), Scaler: t.scaler.State(),
		Sampler: place, World: t.comm.Size(), MicroBatch: t.cfg.Batch, Accumulation: t.cfg.Accumulate, Recipe: t.cfg.RecipeText,
		EvaluationDue: t.owed, Metrics: t.resultsHere(), Arrays: t.arraysHere(), Best: t.best,
		Buckets:      t.auto.kept(),
		Kernels:      t.conv.kept(),
		ResidualsBy:  t.residualsBy(),
		Settings:     t.cfg.Settings,
		Fingerprints: map[string]string{"settings": t.cfg.settings(), "sums": comm.Fold(t.comm)},
	}
	if f, err := t.cfg.Data.Fingerprint(); err == nil {
		st.Fingerprints["data"] = f
	}
	file := func(name string, ts []tensor, mean map[string][]byte) checkpoint.TensorFile {
		by := map[string]tensor{}
		f := checkpoint.TensorFile{Name: name, Metadata: map[string]string{"format": "pt"}}
		for _, x := range ts {
			by[x.name] = x
			f.Tensors = append(f.Tensors, safetensors.Tensor{Name: x.name, DType: safetensors.F32, Shape: int64s(x.desc.Shape)})
		}
		f.Data = func(s safetensors.Tensor, w io.Writer) error {
			if b, ok := mean[s.Name]; ok {
				_, err := w.Write(b)
				return err
			}
			return t.write(ctx, by[s.Name], w, name == checkpoint.ModelFile || name == RawFile)
		}
		return f
	}
	c := checkpoint.Content{State: st, Beside: t.cfg.Beside}
	for _, set := range sets {
		c.Files = append(c.Files, file(set.file, set.tensors, set.mean))
	}
	if m := t.moments(); len(m) > 0 {
		c.Files = append(c.Files, file(checkpoint.OptimizerFile, m, nil))
	}
	if f := t.ranksFile(sets); f.Tensors != nil {
		c.Files = append(c.Files, f)
	}
	if owed != nil {
		c.Files = append(c.Files, owed.file(ctx))
	}
	return c
}

// ranksFile holds each rank's own running statistics; empty for one rank, and without statistics.
func (t *Trainer) ranksFile(sets []modelSet) checkpoint.TensorFile {
	own := map[string][]byte{}
	f := checkpoint.TensorFile{Name: RankFile, Data: func(s safetensors.Tensor, w io.Writer) error {
		_, err := w.Write(own[s.Name])
		return err
	}}
	for _, set := range sets {
		if set.ranks == nil {
			continue
		}
		for r := range t.comm.Size() {
			for _, s := range t.statesOf(set.tensors) {
				name := set.rank(r, s.name)
				own[name] = set.ranks[rankState(r, s.name)]
				f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: int64s(s.desc.Shape)})
			}
		}
	}
	return f
}

func int64s(s npu.Shape) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}

// write streams one tensor in the plain layout; with finite, all its values must be finite. The host must be little-endian like the file; package
// safetensors does not build otherwise.
func (t *Trainer) write(ctx context.Context, x tensor, w io.Writer, finite bool) error {
	if n := int(x.desc.PlainBytes()); cap(t.hostTensor) < n {
		t.hostTensor = make([]byte, n)
	}
	b := t.hostTensor[:x.desc.PlainBytes()]
	if err := t.mover.Out(ctx, b, x.at, x.desc); err != nil {
		return fmt.Errorf("%s: %w", x.name, err)
	}
	if finite && slices.ContainsFunc(data.F32(b), notFinite) {
		return fmt.Errorf("%s %w", x.name, errNotFinite)
	}
	_, err := w.Write(b)
	return err
}

// notFinite tests the exponent: all ones in infinities and NaN.
func notFinite(v float32) bool { return math.Float32bits(v)&0x7f800000 == 0x7f800000 }
