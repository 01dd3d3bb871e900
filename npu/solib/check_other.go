//go:build !unix

package solib

import "errors"

// ErrUntrusted is wrapped by the error for a library that other users could change.
var ErrUntrusted = errors.New("is not loaded")

// Check returns the path unchanged: this system does not have Unix owners and modes.
func Check(path string) (string, error) { return path, nil }
