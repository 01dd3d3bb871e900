package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"
)

var (
	// ErrNone means that the store has no checkpoint at all: a new run.
	ErrNone = errors.New("no checkpoint")
	// ErrNoSpace means that the disk or the quota is full. Training can continue.
	ErrNoSpace = errors.New("no space left")
	// ErrDamaged means that the contents of a checkpoint are not those that were saved.
	ErrDamaged = errors.New("damaged")
)

// SaveError explains why a checkpoint was not saved. The older checkpoints are untouched, so training can continue.
type SaveError struct {
	Step int64
	Dir  string // intended directory
	Err  error
}

func (e *SaveError) Error() string {
	hint := ""
	if errors.Is(e.Err, ErrNoSpace) {
		hint = "\nhint: free space there, keep fewer checkpoints, or choose another directory"
	}
	return fmt.Sprintf("checkpoint: step %d was not saved to %s: %v%s", e.Step, e.Dir, e.Err, hint)
}

func (e *SaveError) Unwrap() error { return e.Err }

// named wraps full-disk errors in ErrNoSpace.
func named(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, a...))
}

// passing reports whether an error of the system may be temporary: the medium, the network or the server did not answer. The contents are then
// unknown.
func passing(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
}

// again repeats a read once more, and a third time, after an error that may be temporary.
func again(read func() error) error {
	err := read()
	for wait := 20 * time.Millisecond; err != nil && passing(err) && wait < 200*time.Millisecond; wait *= 5 {
		time.Sleep(wait)
		err = read()
	}
	return err
}

// unreadable distinguishes missing or truncated files, which are damage, from temporary failures of the system.
func unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return damaged("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
