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
	// ErrNone says that the store holds no checkpoint at all: a new run.
	ErrNone = errors.New("no checkpoint")
	// ErrNoSpace says that the disk or the quota is full. Training can go on.
	ErrNoSpace = errors.New("no space left")
	// ErrDamaged says that the contents of a checkpoint are not what was saved.
	ErrDamaged = errors.New("damaged")
)

// SaveError is why a checkpoint was not saved. The older checkpoints are as they were, so training can go on.
type SaveError struct {
	Step int64
	Dir  string // where it should have gone
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

// named gives the errors of a full disk their common name.
func named(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, a...))
}

// passing says whether an error is of the system and may be over in a moment: the medium, the network or the server did not answer. What is there is not known then.
func passing(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
}

// again does what reads once more, and a third time, after an error that may pass.
func again(read func() error) error {
	err := read()
	for wait := 20 * time.Millisecond; err != nil && passing(err) && wait < 200*time.Millisecond; wait *= 5 {
		time.Sleep(wait)
		err = read()
	}
	return err
}

// unreadable tells what is gone or cut off, which is damage, from what the system will not give just now.
func unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return damaged("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
