package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
)

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// save writes a checkpoint: rank 0 writes, and the others wait for its word. A full disk, or any other trouble with storage, is a warning: the older checkpoints are untouched and
// training continues; with must it is an error, for then nothing will come after.
func (t *Trainer) save(ctx context.Context, must bool) error {
	if t.saver == nil {
		if must && t.step < t.total && t.comm.Rank() == 0 {
			slog.Warn("there is no directory for checkpoints: nothing is saved", "step", t.step)
		}
		return nil
	}
	states, err := t.gather(ctx)
	if err != nil {
		return err
	}
	var failed error
	if t.comm.Rank() == 0 {
		what := fmt.Sprintf("writing the checkpoint of step %d", t.step)
		end, done := t.onDisk(what), launch.Busy(what) // for the other ranks, and for the supervisor
		saved, err := t.saver.Save(ctx, t.content(ctx, states))
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
		return launch.WithCode(launch.ExitNumerics, fmt.Errorf("train: rank %d step %d: the weights are beyond repair, and are not saved: %w\nhint: older checkpoints are good; lower the learning rate, lengthen the warm-up, or limit the gradient norm", t.comm.Rank(), t.step, failed))
	}
	if errors.Is(failed, dirlock.ErrLost) {
		return launch.WithCode(launch.ExitInUse, failed)
	}
	if must {
		return launch.WithCode(launch.ExitStorage, failed)
	}
	slog.Error("checkpoint failed; the older ones are untouched and training continues", "step", t.step, "reason", failed)
	return nil
}

// errNotFinite is why weights are not saved: going on from them would be of no use to anybody, and the last good checkpoint might be rotated away.
var errNotFinite = errors.New("holds a number that is not finite")

// rankState names the running statistic of a rank in a checkpoint.
func rankState(rank int, name string) string { return fmt.Sprintf("rank%d/%s", rank, name) }

func (t *Trainer) content(ctx context.Context, states statistics) checkpoint.Content {
	place, _ := json.Marshal(t.at)
	st := checkpoint.State{
		DataSamples: int64(t.cfg.Data.Len()), Classes: t.cfg.Data.Classes(),
		Version: Version(), Step: int64(t.step), Epoch: int64(t.at.Epoch), Samples: t.samples, OptimizerSteps: t.opt.Count(), Scaler: t.scaler.State(),
		Sampler: place, World: t.comm.Size(), MicroBatch: t.cfg.Batch, Accumulation: t.cfg.Accumulate, Recipe: t.cfg.RecipeText,
		EvaluationDue: t.owed,
		Fingerprints:  map[string]string{"settings": t.cfg.settings()},
	}
	if f, err := t.cfg.Data.Fingerprint(); err == nil {
		st.Fingerprints["data"] = f
	}
	file := func(name string, ts []tensor) checkpoint.TensorFile {
		by := map[string]tensor{}
		f := checkpoint.TensorFile{Name: name, Metadata: map[string]string{"format": "pt"}}
		for _, x := range ts {
			by[x.name] = x
			f.Tensors = append(f.Tensors, safetensors.Tensor{Name: x.name, DType: safetensors.F32, Shape: int64s(x.desc.Shape)})
		}
		f.Data = func(s safetensors.Tensor, w io.Writer) error {
			if b, ok := states.mean[s.Name]; ok {
				_, err := w.Write(b)
				return err
			}
			return t.write(ctx, by[s.Name], w, name == checkpoint.ModelFile)
		}
		return f
	}
	c := checkpoint.Content{State: st, Beside: t.cfg.Beside, Files: []checkpoint.TensorFile{file(checkpoint.ModelFile, t.model())}}
	if m := t.moments(); len(m) > 0 {
		c.Files = append(c.Files, file(checkpoint.OptimizerFile, m))
	}
	if states.ranks != nil {
		f := checkpoint.TensorFile{Name: RankFile, Data: func(s safetensors.Tensor, w io.Writer) error {
			_, err := w.Write(states.ranks[s.Name])
			return err
		}}
		for r := range t.comm.Size() {
			for _, s := range t.train.prog.States() {
				f.Tensors = append(f.Tensors, safetensors.Tensor{Name: rankState(r, s.Name), DType: safetensors.F32, Shape: int64s(s.Desc.Shape)})
			}
		}
		c.Files = append(c.Files, f)
	}
	return c
}

// RankFile holds, in a checkpoint of several ranks, each rank's own running statistics; the model file has their mean.
const RankFile = "ranks.safetensors"

func int64s(s npu.Shape) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}

// write streams one tensor in the plain layout; with finite it must hold good numbers. The host is little-endian like the file, or package safetensors would refuse to build.
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

// notFinite looks at the exponent: it is all ones in infinities and in what is not a number.
func notFinite(v float32) bool { return math.Float32bits(v)&0x7f800000 == 0x7f800000 }

// resume goes on from a checkpoint where the configuration asks for it and there is one. Rank 0 chooses which, so that ranks cannot choose differently.
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

// choose opens the checkpoint to go on from; nil where the run starts anew.
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
	if t.comm.Rank() == 0 {
		ck, rep, err := store.Latest(ctx)
		if err != nil && (must || !errors.Is(err, checkpoint.ErrNone)) {
			return nil, launch.WithCode(launch.ExitNoInput, err) // Run tells the others, who wait in tell
		}
		if rep.FellBack() {
			slog.Warn(strings.TrimSpace(rep.String()))
		}
		if ck != nil {
			name = ck.Name
			ck.Close()
		}
	}
	name, err := t.tell(ctx, name)
	if err != nil || name == "" {
		return nil, err
	}
	return store.Load(ctx, name)
}

// restore sets everything from a checkpoint.
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
		return fmt.Errorf("place in the data: %w", err)
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
	// The evaluation comes after the checkpoint: a run that ended in between owes it.
	t.owed = t.eval != nil && t.evaluated != t.step && (st.EvaluationDue || t.step >= t.total)
	t.warnChanged(st)
	return nil
}

// warnChanged says which guarantees no longer hold when a run goes on in another setting.
func (t *Trainer) warnChanged(st checkpoint.State) {
	if t.comm.Rank() != 0 || t.evaluating {
		return
	}
	if st.World != t.comm.Size() || st.MicroBatch != t.cfg.Batch || st.Accumulation != t.cfg.Accumulate {
		slog.Warn("resumed with another division of the batch: the samples go on in the same order, losses agree to rounding and not to the bit",
			"was", fmt.Sprintf("%d ranks × %d × %d", st.World, st.MicroBatch, st.Accumulation), "is", fmt.Sprintf("%d ranks × %d × %d", t.comm.Size(), t.cfg.Batch, t.cfg.Accumulate))
	}
	if f, err := t.cfg.Data.Fingerprint(); err == nil && st.Fingerprints["data"] != "" && st.Fingerprints["data"] != f {
		slog.Warn("resumed on other data than the checkpoint was made with", "was", st.Fingerprints["data"], "is", f)
	}
	if was := st.Fingerprints["settings"]; was != "" && was != t.cfg.settings() && st.World == t.comm.Size() {
		slog.Warn("resumed with other settings", "was", was, "is", t.cfg.settings())
	}
}

// read sets tensors from a file of the checkpoint.
func (t *Trainer) read(ctx context.Context, ck *checkpoint.Checkpoint, file string, ts []tensor) error {
	f := ck.File(file)
	if f == nil && len(ts) == 0 {
		return nil
	}
	if f == nil {
		return fmt.Errorf("it has no %s\nhint: was it made with another optimizer?", file)
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
		return t.misfit(file, names, faults, "model and optimizer must be those of the checkpoint; to start from its weights alone use init_from")
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
