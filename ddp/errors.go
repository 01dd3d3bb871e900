package ddp

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("ddp: engine is closed")

// StepError reports where a reduction failed.
type StepError struct {
	Rank   int
	Step   int64
	Bucket int
	Title  string // first and last parameter of the bucket
	Err    error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("ddp: rank %d step %d bucket %d (%s): %v", e.Rank, e.Step, e.Bucket, e.Title, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }
