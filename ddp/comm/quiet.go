package comm

import "errors"

// ErrInUse marks (errors.Is) the error of a collective that failed and whose memory the transport could not take back: a device that does not answer may
// still write it. Such memory must not be freed. Without this mark, nothing touches the memory of a handle that is done.
var ErrInUse = errors.New("the memory may still be in use")

// InUse marks an error with ErrInUse. Its text stays.
func InUse(err error) error { return &inUse{err} }

type inUse struct{ err error }

func (e *inUse) Error() string        { return e.err.Error() }
func (e *inUse) Unwrap() error        { return e.err }
func (e *inUse) Is(target error) bool { return target == ErrInUse }
