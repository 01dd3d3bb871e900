package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// ErrStopped matches (errors.Is) the error of a run that ended early on request. The error itself is a *StopError.
var ErrStopped = errors.New("stopped on request")

// StopError describes a run that ended on request and how to resume it. Its exit code is 75 if there is a checkpoint that the same command resumes from,
// and 79 if it starts over.
type StopError struct {
	Step       int    // steps done
	Abandoned  bool   // the next step was under way and was abandoned
	Saved      bool   // the checkpoint of Step is in Dir
	Earlier    bool   // the run was stopped during its start, and Dir has a checkpoint of an earlier run
	Began      int    // the step that the run began after; if equal to Step, nothing was lost, saved or not
	Dir        string // directory of checkpoints; "": none are written
	Resumes    bool   // the same configuration resumes from Dir
	Evaluation bool   // it was an evaluation, which saves nothing
	Err        error  // what the request interrupted during the start
}

// Is makes the error match ErrStopped.
func (e *StopError) Is(target error) bool { return target == ErrStopped }

// Unwrap returns what the request interrupted.
func (e *StopError) Unwrap() error { return e.Err }

// ExitCode is 75 only if running again makes progress: a scheduler that repeats a command for as long as it exits with 75 must reach the end.
func (e *StopError) ExitCode() int {
	if e.Resumes && (e.Saved || e.Earlier) {
		return launch.ExitStopped
	}
	return launch.ExitNotResumable
}

func (e *StopError) Error() string { return e.what() + "\nhint: " + e.hint() }

// what is the message without its hint.
func (e *StopError) what() string {
	if e.Evaluation {
		return ErrStopped.Error() + "; an evaluation saves nothing"
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
		return "enable checkpoints to be able to resume; the same command starts over"
	case !e.Resumes && e.Saved:
		return "the same command does not resume from there; set checkpoint.resume to auto or to that checkpoint"
	case !e.Resumes:
		return "run the same command to start over"
	case !e.Saved && !e.Earlier:
		return "the same command starts over"
	}
	return "run the same command again to resume"
}

// request is an outside request beyond Stop: to abandon the current work.
type request struct {
	mu      sync.Mutex
	asked   bool
	open    bool            // the current work may be abandoned
	stream  npu.Stream      // skips its work then; nil before there is one
	waiting context.Context // for waits in such work. There is one per run, because a step must leave nothing behind
	end     context.CancelFunc
}

// abandon ends the current work. The caller holds mu.
func (r *request) abandon() {
	r.end()
	if r.stream != nil {
		r.stream.Skip(true)
	}
}

// close releases the context.
func (r *request) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open = false; r.end != nil {
		r.end()
	}
}

// Stop asks the run to end after the current step: all ranks agree, save a checkpoint, and Run returns a *StopError. It may be called from any
// goroutine, including a signal handler, and on any rank.
func (t *Trainer) Stop() { t.stop.Store(true) }

// Abandon is like Stop but does not wait for the current step, evaluation or start: that work ends as soon as the running kernel does, and the state
// of the last complete step is saved. All ranks agree; a step whose update may have begun on some rank is completed anyway. Like Stop, Abandon may be
// called from anywhere.
func (t *Trainer) Abandon() {
	t.stop.Store(true) // first, so that code that finds work skipped also finds the reason
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	if t.ask.asked {
		return
	}
	t.ask.asked = true
	if !t.ask.open {
		slog.Info("asked to abandon the current work; a save or update is in progress and completes first")
		return
	}
	slog.Info("abandoning the current work")
	t.ask.abandon()
}

// risk begins a section that Abandon may end: Abandon cancels the returned context, used for waiting, and makes the stream, if any, skip its work.
func (t *Trainer) risk(ctx context.Context) context.Context {
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	if t.ask.waiting == nil {
		t.ask.waiting, t.ask.end = context.WithCancel(ctx)
	}
	t.ask.open, t.ask.stream = true, t.stream
	if t.ask.asked {
		t.ask.abandon()
	}
	return t.ask.waiting
}

// commit ends the section: it reports whether it was abandoned; from now on it cannot be.
func (t *Trainer) commit() bool {
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	t.ask.open = false
	return t.ask.asked
}

// abandoned reports whether Abandon was called.
func (t *Trainer) abandoned() bool {
	t.ask.mu.Lock()
	defer t.ask.mu.Unlock()
	return t.ask.asked
}

// computeAgain makes the stream compute again after an abandoned section.
func (t *Trainer) computeAgain(ctx context.Context) error {
	if err := t.stream.Sync(ctx); err != nil {
		return t.where(err)
	}
	t.stream.Skip(false)
	return nil
}

// stopError describes the end on request in the present state.
func (t *Trainer) stopError() *StopError {
	e := &StopError{Step: t.step, Began: t.first, Resumes: t.cfg.Resume && t.cfg.ResumeFrom == "", Abandoned: t.gaveUp, Saved: t.saved >= 0 && t.saved == t.step}
	if t.writes {
		e.Dir = t.cfg.SaveDir
	}
	return e
}

// stopped saves the last step of the run, unless its checkpoint already exists or the run has not done any step.
func (t *Trainer) stopped(ctx context.Context) error {
	if t.saved != t.step && t.step != t.first {
		if err := t.save(ctx, true); err != nil {
			return err
		}
		t.note(ctx) // its evaluation preceded its checkpoint
	}
	return t.stopError()
}

// begin opens everything. It reports whether a stop was requested meanwhile, if there is anything to stop.
func (t *Trainer) begin(ctx context.Context) (stop bool, err error) {
	err = t.open(t.risk(ctx))
	if t.commit() && err != nil { // whatever the error: the request caused it, here or on another rank
		e := t.stopError()
		e.Step, e.Began, e.Saved, e.Err = 0, 0, false, err
		e.Earlier = e.Dir != "" && checkpoint.Any(e.Dir)
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
