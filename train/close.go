package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data"
)

// finish reports the outcome to the sinks and, on failure, to the peers, then releases everything.
func (t *Trainer) finish(err error) error {
	var stop *StopError
	failed := err != nil && !errors.As(err, &stop)
	if failed {
		launch.Report(err) // before the peers know, because they may exit first
	}
	if t.comm != nil && (failed || stop != nil && stop.Err != nil) { // the peers may still be waiting for this rank
		if t.data != nil {
			t.data.Abort(err)
		}
		t.comm.Abort(err)
	}
	t.emitEnd(err)
	cerr, unfreed := t.dismantle()
	t.ask.close()
	if t.bus != nil {
		cerr = errors.Join(cerr, launch.WithCode(launch.ExitStorage, t.bus.Close()))
	}
	if unfreed != nil && !failed { // after a failure it says nothing new
		slog.Warn("the run is complete, but its device was not left in good order", "error", unfreed)
	}
	if err == nil && cerr != nil {
		err = fmt.Errorf("train: closing: %w", cerr)
	}
	return err
}

// Close releases everything. Run calls it; only a Trainer that was opened in another way needs it. Close is idempotent.
func (t *Trainer) Close() error {
	err, unfreed := t.dismantle()
	return errors.Join(err, unfreed)
}

// dismantle releases everything. The errors of what holds the run's results are apart from those of the device and its memory, which end with the process
// anyway and say nothing about the results.
func (t *Trainer) dismantle() (err, unfreed error) {
	var errs, device []error
	add := func(f func() error) { errs = append(errs, f()) }
	free := func(f func() error) { device = append(device, f()) }
	for _, l := range []*data.Loader{t.loader, t.held} {
		if l != nil {
			add(l.Close)
		}
	}
	if t.stream != nil {
		// What is still enqueued uses memory that is about to be freed, and its results are no longer needed.
		t.stream.Skip(true)
		ctx, cancel := context.WithTimeout(context.Background(), t.quiesce)
		err := t.stream.Sync(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			add(t.abandon)
			return errors.Join(errs...), errors.Join(device...)
		}
	}
	if t.chosen != nil {
		add(t.chosen.Close)
		t.chosen = nil
	}
	if t.opt != nil {
		free(t.opt.Close)
	}
	if t.eng != nil {
		free(t.eng.Close)
	}
	if t.data != nil && t.data != t.comm { // after the engine, before the device, and before the owner of comm closes that
		free(t.data.Close)
	}
	if t.mover != nil {
		free(t.mover.Close)
	}
	for _, p := range []*pass{t.train, t.eval} {
		if p != nil {
			free(p.close)
		}
	}
	free(t.marks.close)
	if t.store != nil {
		free(t.store.close)
	}
	if t.scratch != nil {
		free(t.scratch.Free)
	}
	free(t.pinned.close)
	if t.stream != nil {
		free(t.stream.Close)
	}
	if t.dev != nil {
		free(t.dev.Close)
	}
	if t.lock != nil {
		add(t.lock.Release)
	}
	t.loader, t.held, t.opt, t.eng, t.mover, t.train, t.eval, t.store, t.scratch, t.stream, t.dev = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
	t.data = nil
	return errors.Join(errs...), errors.Join(device...)
}

// abandon shuts down what it can while the device is still busy with a kernel that hangs or runs too long. The memory that the kernel may write to,
// including gradients that it may share with other ranks, is not freed before the process ends.
func (t *Trainer) abandon() error {
	var err error
	if t.eng != nil {
		err = t.eng.Abandon()
	}
	slog.Warn("the device does not stop; its memory stays allocated until this process ends", "waited", t.quiesce)
	return errors.Join(err, fmt.Errorf("train: rank %d: the device is still busy %v after it was asked to stop; its memory is not freed",
		t.comm.Rank(), t.quiesce))
}
