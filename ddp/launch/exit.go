package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The exit codes of gotrain. They follow sysexits where it has a fitting name; a process killed by
// signal n counts as 128+n, as in a shell.
const (
	ExitOK           = 0   // done
	ExitTraining     = 1   // an error without a specific code
	ExitUsage        = 64  // wrong command line or launcher environment
	ExitNoInput      = 66  // data or checkpoint not found or not readable
	ExitUnavailable  = 69  // device or collective not available, or a peer is gone
	ExitInternal     = 70  // ranks disagree, or an internal invariant broke
	ExitInUse        = 73  // another run owns the output folder
	ExitStorage      = 74  // writing a checkpoint or log failed
	ExitStopped      = 75  // stopped on request; the same command resumes
	ExitNumerics     = 76  // numerics: NaN, infinity, loss scale at its floor
	ExitRecipe       = 78  // the recipe is not valid
	ExitNotResumable = 79  // stopped on request; the same command starts over
	ExitTimeout      = 124 // a deadline passed
)

// CodeInfo is a row of the table of exit codes.
type CodeInfo struct {
	Code    int
	Name    string
	Meaning string
}

// Codes is the table of exit codes, in order. The command-line help and the docs print it.
func Codes() []CodeInfo {
	return []CodeInfo{
		{ExitOK, "ok", "done"},
		{ExitTraining, "error", "training failed for a reason without a specific code"},
		{ExitUsage, "usage", "wrong command line, or incomplete launcher environment"},
		{ExitNoInput, "no-input", "data or checkpoint not found or not readable"},
		{ExitUnavailable, "unavailable", "device or collective not available, or another rank is gone"},
		{ExitInternal, "internal", "ranks disagree, or an internal invariant broke: please report it"},
		{ExitInUse, "in-use", "another run writes to the output folder, or has taken it over"},
		{ExitStorage, "storage", "writing a checkpoint or a log failed (disk full, permissions)"},
		{ExitStopped, "stopped", "stopped on request; the same command resumes from the last complete step"},
		{ExitNumerics, "numerics", "loss or gradients are not finite, or the loss scale reached its floor"},
		{ExitRecipe, "recipe", "the recipe is not valid; every problem is listed"},
		{ExitNotResumable, "not-resumable", "stopped on request; the same command starts over, because nothing is saved yet, or checkpoints or resuming are off"},
		{ExitTimeout, "timeout", "a deadline passed: a step, a collective or the startup took too long"},
	}
}

// CodeTable formats the table as text for help pages.
func CodeTable() string {
	var b strings.Builder
	for _, c := range Codes() {
		fmt.Fprintf(&b, "  %3d  %s\n", c.Code, c.Meaning)
	}
	b.WriteString("  128+n  killed by signal n\n")
	return b.String()
}

// codeError gives an error an exit code without changing its text.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }
func (e *codeError) ExitCode() int { return e.code }

// WithCode attaches an exit code to err; nil stays nil. Errors of other packages can have a method ExitCode() int instead
// of importing this package.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codeError{code, err}
}

// ExitCode returns the exit code of an error: that of the outermost error in the chain with a method ExitCode() int, 124 for a
// deadline that passed, and 1 otherwise; 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var c interface{ ExitCode() int }
	if errors.As(err, &c) {
		return c.ExitCode()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ExitTimeout
	}
	return ExitTraining
}
