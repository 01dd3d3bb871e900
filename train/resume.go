package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// origin is what rank 0 tells the others about the checkpoint that the run resumes from. They may have no access to its files.
type origin struct {
	Name  string           `json:"name"`
	Path  string           `json:"path"`
	State checkpoint.State `json:"state"`
	Own   bool             `json:"own"` // it has running statistics of each rank, for this number of ranks
	// Residuals says that it has those of compressed gradients.
	Residuals bool `json:"residuals,omitempty"`
	Averaged  bool `json:"averaged,omitempty"` // it has an average besides the weights
	Here      bool `json:"here,omitempty"`     // it is in the folder to which the run saves
}

// resume continues from a checkpoint if the configuration asks for it and there is one. Rank 0 chooses which, so that ranks cannot choose
// differently, and reads it; weights and optimizer state are broadcast afterwards.
func (t *Trainer) resume(ctx context.Context) (bool, error) {
	ck, err := t.peek(ctx)
	if err != nil {
		return false, err
	}
	t.chosen = nil
	from := origin{}
	if ck != nil {
		defer ck.Close()
		from = origin{Name: ck.Name, Path: ck.Path, State: ck.State, Own: ck.File(RankFile) != nil && ck.State.World == t.comm.Size(),
			Residuals: ck.File(ResidualFile) != nil, Averaged: ck.File(RawFile) != nil,
			Here: t.cfg.ResumeFrom == "" || t.owned != nil && t.owned.Covers(filepath.Dir(ck.Path))}
	}
	from, err = t.origin(ctx, from)
	if err != nil || from.Path == "" {
		return false, err
	}
	if err := t.restore(ctx, ck, from); err != nil {
		return false, fmt.Errorf("train: resume from %s: %w", from.Path, err)
	}
	if from.Here {
		t.saved, t.savedName = t.step, from.Name
	}
	if t.comm.Rank() == 0 && !t.evaluating {
		slog.Info(t.found(from.State), "checkpoint", from.Path, "step", t.step, "place", t.at.String())
	}
	return true, nil
}

// origin sends rank 0's origin to all ranks. Its path is "" if the run starts from the beginning.
func (t *Trainer) origin(ctx context.Context, from origin) (origin, error) {
	if t.cfg.ResumeFrom == "" && (!t.cfg.Resume || t.cfg.SaveDir == "") {
		return from, nil // no rank resumes
	}
	text, err := json.Marshal(from)
	if err == nil {
		text, err = t.share(ctx, text)
	}
	if err == nil {
		err = json.Unmarshal(text, &from)
	}
	return from, err
}

// peek opens the checkpoint to resume from, on rank 0, before resume needs it; nil: there is none.
func (t *Trainer) peek(ctx context.Context) (*checkpoint.Checkpoint, error) {
	if t.peeked {
		return t.chosen, nil
	}
	ck, err := t.choose(ctx)
	if err == nil {
		t.chosen, t.peeked = ck, true
	}
	return ck, err
}

// choose opens the checkpoint to resume from, on rank 0; nil if the run starts from the beginning. An error of rank 0 reaches the others, which wait for its
// answer, because Run notifies them.
func (t *Trainer) choose(ctx context.Context) (*checkpoint.Checkpoint, error) {
	if t.comm.Rank() != 0 {
		return nil, nil
	}
	var ck *checkpoint.Checkpoint
	var rep checkpoint.Report
	var err error
	switch from := t.cfg.ResumeFrom; {
	case from != "":
		ck, rep, err = checkpoint.OpenAt(ctx, t.pulse.Watch(t.disk), from)
	case t.cfg.Resume && t.saver != nil:
		if ck, rep, err = t.saver.Latest(ctx); errors.Is(err, checkpoint.ErrNone) {
			err = nil // the run starts
		}
	}
	if err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, err)
	}
	if rep.FellBack() {
		slog.Warn(strings.TrimSpace(rep.String()))
	}
	return ck, nil
}

// restore sets the whole state from a checkpoint, which rank 0 has open.
func (t *Trainer) restore(ctx context.Context, ck *checkpoint.Checkpoint, from origin) error {
	st := from.State
	if err := t.checkClasses(st); err != nil {
		return err
	}
	if ck != nil {
		if err := t.restoreModel(ctx, ck); err != nil {
			return err
		}
		if err := t.read(ctx, ck, checkpoint.OptimizerFile, t.moments()); err != nil {
			return err
		}
	}
	own := rankState
	if t.evaluating && from.Averaged {
		own = rankAverage
	}
	if err := t.restoreStatistics(ctx, ck, from.Own, t.model(), own); err != nil {
		return err
	}
	if t.averaged = from.Averaged && t.cfg.Optim.EMA.On(); t.averaged {
		if err := t.restoreStatistics(ctx, ck, from.Own, t.averages(), rankAverage); err != nil {
			return err
		}
	}
	if err := t.restoreResiduals(ctx, ck, from); err != nil {
		return err
	}
	var at data.State
	if err := json.Unmarshal(st.Sampler, &at); err != nil {
		return fmt.Errorf("position in the data: %w", err)
	}
	if err := t.seek(st, at); err != nil {
		return err
	}
	if err := t.scaler.Restore(st.Scaler); err != nil {
		return err
	}
	t.opt.SetCount(st.OptimizerSteps)
	t.best = st.Best
	if st.Metrics != nil && (t.eval == nil || t.eval.recall(st.Metrics, st.Arrays)) {
		t.lastEv, t.evaluated = st.Metrics, t.step
		if t.eval != nil {
			t.lastAll = t.eval.values
		}
		t.judgeAgain()
	}
	// The evaluation follows the checkpoint: a run that ended in between still has to do it.
	t.owed = t.eval != nil && t.evaluated != t.step && (st.EvaluationDue || t.step >= t.total)
	t.warnChanged(st)
	return t.compareSettings(st)
}

// restoreStatistics sets the running statistics: each rank's own, or what rank 0 has read, their mean.
func (t *Trainer) restoreStatistics(ctx context.Context, ck *checkpoint.Checkpoint, own bool, model []tensor, named func(rank int, name string) string) error {
	states := t.statesOf(model)
	if !own {
		return t.shareStates(ctx, states)
	}
	var total int64
	for _, s := range states {
		total += s.desc.PlainBytes()
	}
	mine, err := t.fromFirst(ctx, "running statistics", total, func(rank int) ([]byte, error) {
		var all []byte
		for _, s := range states {
			v, err := ck.File(RankFile).Float32s(named(rank, s.name))
			if err != nil {
				return nil, err
			}
			all = append(all, floatBytes(v)...)
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	for _, s := range states {
		n := s.desc.PlainBytes()
		if err := t.mover.In(ctx, s.at, s.desc, mine[:n]); err != nil {
			return err
		}
		mine = mine[n:]
	}
	return nil
}

// warnChanged reports which guarantees no longer hold when a run resumes with other settings.
func (t *Trainer) warnChanged(st checkpoint.State) {
	if t.comm.Rank() != 0 || t.evaluating {
		return
	}
	if st.World != t.comm.Size() || st.MicroBatch != t.cfg.Batch || st.Accumulation != t.cfg.Accumulate {
		slog.Warn("resumed with another division of the batch: samples continue in the same order, but losses agree to rounding, not bit by bit",
			"was", fmt.Sprintf("%d ranks × %d × %d", st.World, st.MicroBatch, st.Accumulation),
			"is", fmt.Sprintf("%d ranks × %d × %d", t.comm.Size(), t.cfg.Batch, t.cfg.Accumulate))
	}
}

// read loads tensors from a file of the checkpoint.
func (t *Trainer) read(ctx context.Context, ck *checkpoint.Checkpoint, file string, ts []tensor) error {
	f := ck.File(file)
	if f == nil && len(ts) == 0 {
		return nil
	}
	if f == nil {
		return fmt.Errorf("the checkpoint has no %s\nhint: check whether it was made with another optimizer", file)
	}
	var names []string
	for _, x := range f.Tensors() {
		names = append(names, x.Name)
	}
	fit := fitting(ts, names, func(name string) ([]int, bool) {
		s, ok := f.Lookup(name)
		return intsOf(s.Shape), ok
	}, t.cfg.InitIgnore)
	if faults := fit.faults(false); faults != "" {
		return t.misfit(file, names, faults, "use the model and optimizer of the checkpoint; to start from its weights alone use init_from")
	}
	t.sayIgnored(file, fit.ignored)
	for _, x := range ts {
		v, err := f.Float32s(x.name)
		if err != nil {
			return err
		}
		if err := t.mover.In(ctx, x.at, x.desc, floatBytes(v)); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
