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

// resume continues from a checkpoint if the configuration asks for it and there is one. Rank 0 chooses which, so that ranks cannot choose
// differently.
func (t *Trainer) resume(ctx context.Context) (bool, error) {
	ck, err := t.choose(ctx)
	if ck == nil || err != nil {
		return false, err
	}
	defer ck.Close()
	if err := t.restore(ctx, ck); err != nil {
		return false, fmt.Errorf("train: resume from %s: %w", ck.Path, err)
	}
	if t.cfg.ResumeFrom == "" {
		t.saved, t.savedName = t.step, ck.Name
	}
	if t.comm.Rank() == 0 && !t.evaluating {
		slog.Info(t.found(ck.State), "checkpoint", ck.Path, "step", t.step, "place", t.at.String())
	}
	return true, nil
}

// choose opens the checkpoint to resume from; nil if the run starts from the beginning.
func (t *Trainer) choose(ctx context.Context) (*checkpoint.Checkpoint, error) {
	store, must := t.saver, false
	switch from := t.cfg.ResumeFrom; {
	case from != "":
		path, err := filepath.Abs(from)
		if err != nil {
			return nil, err
		}
		if exists(filepath.Join(path, checkpoint.ManifestFile)) {
			ck, err := checkpoint.New(t.pulse.Watch(t.disk), filepath.Dir(path), t.cfg.KeepLast).Load(ctx, filepath.Base(path))
			return ck, launch.WithCode(launch.ExitNoInput, err)
		}
		store, must = checkpoint.New(t.pulse.Watch(t.disk), path, t.cfg.KeepLast), true
	case !t.cfg.Resume || t.saver == nil:
		return nil, nil
	}
	name := ""
	var mine *checkpoint.Checkpoint
	if t.comm.Rank() == 0 {
		ck, rep, err := store.Latest(ctx)
		if err != nil && (must || !errors.Is(err, checkpoint.ErrNone)) {
			return nil, launch.WithCode(launch.ExitNoInput, err) // Run notifies the others, which wait in tell
		}
		if rep.FellBack() {
			slog.Warn(strings.TrimSpace(rep.String()))
		}
		if mine = ck; ck != nil {
			name = ck.Name
		}
	}
	name, err := t.tell(ctx, name)
	if err != nil && mine != nil {
		return nil, errors.Join(err, mine.Close())
	}
	if err != nil || name == "" || mine != nil {
		return mine, err
	}
	return store.Open(ctx, name) // rank 0 has verified it, byte by byte
}

// restore sets the whole state from a checkpoint.
func (t *Trainer) restore(ctx context.Context, ck *checkpoint.Checkpoint) error {
	st := ck.State
	if err := t.checkClasses(st); err != nil {
		return err
	}
	if err := t.read(ctx, ck, checkpoint.ModelFile, t.model()); err != nil {
		return err
	}
	if err := t.read(ctx, ck, checkpoint.OptimizerFile, t.moments()); err != nil {
		return err
	}
	if f := ck.File(RankFile); f != nil && st.World == t.comm.Size() {
		for i, s := range t.train.prog.States() {
			v, err := f.Float32s(rankState(t.comm.Rank(), s.Name))
			if err != nil {
				return err
			}
			if err := t.mover.In(ctx, t.store.states[i], s.Desc, floatBytes(v)); err != nil {
				return err
			}
		}
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
	if st.Metrics != nil {
		t.lastEv, t.evaluated = st.Metrics, t.step
	}
	// The evaluation follows the checkpoint: a run that ended in between still has to do it.
	t.owed = t.eval != nil && t.evaluated != t.step && (st.EvaluationDue || t.step >= t.total)
	t.warnChanged(st)
	return t.compareSettings(st)
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
