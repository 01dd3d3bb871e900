package npu

import "errors"

// ErrAbsent is wrapped by the error of an Opener on a machine that has nothing of its family: no device, no driver. OpenBest then passes it over without a
// word, because nothing is broken; Open returns the error as it is.
var ErrAbsent = errors.New("no such device on this machine")
