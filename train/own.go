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

// Own makes this process the owner of a folder that a run writes to. alone says that it is the only rank, as far as it knows. The error of a folder that another run
// owns has exit code 73, any other 74.
func Own(ctx context.Context, dir string, alone bool, lost func(error)) (*dirlock.Lock, error) {
	o := dirlock.Options{Lost: lost, Waiting: func(o dirlock.Owner, d time.Duration) {
		slog.Warn("the folder has an owner on another machine or in another container; waiting for a sign of life", "folder", dir, "owner", o.String(), "for up to", d)
	}}
	if alone {
		o.Hint = "if one launcher started several processes that all say this, gotrain does not know that launcher and each process believes it is " +
			"alone: use mpirun, torchrun, srun or hcclrun, or --ranks"
	}
	lock, err := dirlock.Take(ctx, dir, o)
	var busy *dirlock.BusyError
	if err != nil && !errors.As(err, &busy) {
		return nil, launch.WithCode(launch.ExitStorage, err)
	}
	return lock, err
}

// own makes the run the owner of its folder of checkpoints: rank 0 writes there, so rank 0 owns it. It comes before the choice of the checkpoint to resume from.
func (t *Trainer) own(ctx context.Context) error {
	if t.cfg.SaveDir == "" || t.comm.Rank() != 0 {
		return nil
	}
	if l := t.cfg.Lock; l != nil && l.Covers(t.cfg.SaveDir) {
		t.owned = l
		return nil
	}
	// The directory and those above it are made durable before the lock makes it.
	if err := checkpoint.New(checkpoint.OS{}, t.cfg.SaveDir, t.cfg.KeepLast).Prepare(); err != nil {
		return launch.WithCode(launch.ExitStorage, err)
	}
	var err error
	t.lock, err = Own(ctx, t.cfg.SaveDir, t.comm.Size() == 1, func(error) { t.Stop() }) // the save will say why
	t.owned = t.lock
	return err
}

// files is the file system of checkpoints; nothing is changed on it once the folder is somebody else's.
func (t *Trainer) files() checkpoint.FS {
	if t.owned == nil { // another rank than 0, or an evaluation: they only read
		return t.pulse.Watch(t.disk)
	}
	return checkpoint.Guard(t.pulse.Watch(t.disk), t.owned.Check)
}
