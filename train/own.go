package train

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/dirlock"
)

// Own makes this process the owner of a run's output folder. alone means that, as far as this process knows, it is the only rank. If another run owns
// the folder, the error has exit code 73, any other error 74.
func Own(ctx context.Context, dir string, alone bool, lost func(error)) (*dirlock.Lock, error) {
	o := dirlock.Options{Lost: lost, Waiting: func(o dirlock.Owner, d time.Duration) {
		slog.Warn("the output folder belongs to a run on another machine or in another container; waiting for a sign of life",
			"folder", dir, "owner", o.String(), "for up to", d)
	}}
	if alone {
		o.Hint = "if one launcher started several processes that all print this, gotrain does not recognise the launcher and each process believes it is " +
			"alone: start them with mpirun, torchrun, srun or hcclrun, or --ranks"
	}
	lock, err := dirlock.Take(ctx, dir, o)
	var busy *dirlock.BusyError
	if err != nil && !errors.As(err, &busy) {
		return nil, launch.WithCode(launch.ExitStorage, err)
	}
	return lock, err
}

// own makes rank 0, which writes there, the owner of the checkpoint folder. It runs before the checkpoint to resume from is chosen.
func (t *Trainer) own(ctx context.Context) error {
	if t.cfg.SaveDir == "" || t.comm.Rank() != 0 {
		return nil
	}
	if l := t.cfg.Lock; l != nil && l.Covers(t.cfg.SaveDir) {
		t.owned = l
		return nil
	}
	// Prepare makes the directory and its parents durable; it must come before the lock creates them.
	if err := checkpoint.New(checkpoint.OS{}, t.cfg.SaveDir, t.cfg.KeepLast).Prepare(); err != nil {
		return launch.WithCode(launch.ExitStorage, err)
	}
	var err error
	t.lock, err = Own(ctx, t.cfg.SaveDir, t.comm.Size() == 1, func(error) { t.Stop() }) // the save reports why
	t.owned = t.lock
	return err
}

// files is the file system of checkpoints. It refuses writes once another process owns the folder.
func (t *Trainer) files() checkpoint.FS {
	if t.owned == nil { // not rank 0, or an evaluation: read-only
		return t.pulse.Watch(t.disk)
	}
	return checkpoint.Guard(t.pulse.Watch(t.disk), t.owned.Check)
}
