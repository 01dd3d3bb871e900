package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
)

// ErrStopped is what errors.Is finds in the error of a run that ended on request, before its end. The error itself is a *StopError.
var ErrStopped = errors.New("stopped on request")

// StopError says how a run that ended on request can be resumed. Its exit code is 75 where the same command resumes without loss, and 79
// where it starts over.
type StopError struct {
	Step       int    // done
	Abandoned  bool   // the step after it was under way and given up
	Saved      bool   // the checkpoint of Step is in Dir
	Began      int    // the step that the run began after: where it is Step nothing was lost, saved or not
	Dir        string // of checkpoints; "": none are written
	Resumes    bool   // the same configuration resumes from what is in Dir
	Evaluation bool   // it was an evaluation, which keeps nothing
	Err        error  // what the request interrupted during the start
}

// Is makes the error an ErrStopped.
func (e *StopError) Is(target error) bool { return target == ErrStopped }

// Unwrap is what the request interrupted.
func (e *StopError) Unwrap() error { return e.Err }

// ExitCode is 75 only where running again makes progress: who runs a command again for as long as it ends with 75 must get to the end.
func (e *StopError) ExitCode() int {
	if e.Dir != "" && e.Resumes {
		return launch.ExitStopped
	}
	return launch.ExitNotResumable
}

func (e *StopError) Error() string { return e.what() + "\nhint: " + e.hint() }

// what is the message without its hint.
func (e *StopError) what() string {
	if e.Evaluation {
		return ErrStopped.Error() + "; an evaluation keeps nothing"
	}
	s := fmt.Sprintf("%v after step %d", ErrStopped, e.Step)
	if e.Step == e.Began {
		s = fmt.Sprintf("%v before step %d was complete", ErrStopped, e.Step+1)
	} else if e.Abandoned {
		s += fmt.Sprintf(" (step %d was abandoned)", e.Step+1)
	}
	switch {
	case e.Saved:
		s += fmt.Sprintf("; the checkpoint of step %d is in %s", e.Step, e.Dir)
	case e.Step == e.Began:
		s += "; there was nothing to save"
	default:
		s += fmt.Sprintf("; checkpoints are off, so the %d steps of this run are lost", e.Step-e.Began)
	}
	if e.Err != nil && !errors.Is(e.Err, context.Canceled) {
		s += fmt.Sprintf(" (during the start: %v)", e.Err)
	}
	return s
}

func (e *StopError) hint() string {
	switch {
	case e.Evaluation:
		return "the same command starts over"
	case e.Dir == "":
		return "the same command starts over; with checkpoints on it would resume"
	case !e.Resumes && e.Saved:
		return "the same command does not resume from there; let it resume automatically, or name that checkpoint"
	case !e.Resumes:
		return "the same command starts over"
	case e.Step == 0:
		return "run the same command again to start"
	}
	return "run the same command again to resume"
}

// request is what was asked of a run from outside, beyond Stop: to abandon what is under way.
type request struct {
	mu      sync.Mutex
	asked   bool
	abandon func() // ends what is under way and changes nothing that lasts; nil where there is no such thing
}

// Stop asks the run to end after the step under way: all ranks agree, save a checkpoint, and Run returns a *StopError. It may be
// called from any goroutine, also from a signal handler, and on any rank.
func (t *Trainer) Stop() { t.stop.Store(true) }

// Abandon is Stop that does not wait for the step, the evaluation or the start under way: it ends as soon as the kernel that runs does, and the state of
// the last complete step is saved. All ranks agree; a step of which an update may have begun on some rank is finished all the same. Like Stop it may be
// called from anywhere.
func (t *Trainer) Abandon() {
	t.stop.Store(true) // first: whoever finds that work was passed over finds the reason
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	if t.ask.asked {
		return
	}
	t.ask.asked = true
	if t.ask.abandon == nil {
		slog.Info("asked to abandon what is under way; that is being saved or updated, and is finished first")
		return
	}
	slog.Info("abandoning what is under way")
	t.ask.abandon()
}

// risk opens a stretch that Abandon may end: it cancels the context, for waiting, and passes over the work of the stream, if there is one.
func (t *Trainer) risk(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	stream := t.stream
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	t.ask.abandon = func() {
		cancel()
		if stream != nil {
			stream.Skip(true)
		}
	}
	if t.ask.asked {
		t.ask.abandon()
	}
	return ctx
}

// commit ends the stretch: it says whether it was abandoned, and from now on it cannot be.
func (t *Trainer) commit() bool {
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	t.ask.abandon = nil
	return t.ask.asked
}

// abandoned says whether somebody asked.
func (t *Trainer) abandoned() bool {
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	return t.ask.asked
}

// computeAgain makes the stream compute after a stretch that was abandoned.
func (t *Trainer) computeAgain(ctx context.Context) error {
	if err := t.stream.Sync(ctx); err != nil {
		return t.where(err)
	}
	t.stream.Skip(false)
	return nil
}

// stopError describes the end on request as things stand.
func (t *Trainer) stopError() *StopError {
	e := &StopError{Step: t.step, Began: t.first, Resumes: t.cfg.Resume && t.cfg.ResumeFrom == "", Abandoned: t.gaveUp, Saved: t.saved >= 0 && t.saved == t.step}
	if t.writes {
		e.Dir = t.cfg.SaveDir
	}
	return e
}

// stopped saves the step that the run ends after, unless its checkpoint is there already or the run has not done any.
func (t *Trainer) stopped(ctx context.Context) error {
	if t.saved != t.step && t.step != t.first {
		if err := t.save(ctx, true); err != nil {
			return err
		}
		t.note(ctx) // its evaluation came before its checkpoint
	}
	return t.stopError()
}

// begin opens everything. It says whether somebody asked to stop meanwhile, where there is anything to stop.
func (t *Trainer) begin(ctx context.Context) (stop bool, err error) {
	err = t.open(t.risk(ctx))
	if t.commit() && err != nil { // whatever the error is: the request brought it about, here or on another rank
		e := t.stopError()
		e.Step, e.Began, e.Saved, e.Err = 0, 0, false, err
		return false, e
	}
	if err != nil {
		return false, err
	}
	t.first = t.step
	if t.step >= t.total && !t.owed {
		return false, nil
	}
	v, err := t.eng.Agree(ctx, ddp.Vote{Stop: t.stop.Load()})
	return len(v.Stop) > 0, err
}
