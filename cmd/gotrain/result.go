package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/gotrain/gotrain/ddp/launch"
)

// result is the standard output of a command that prints a result. It remembers the first write that failed, because fmt.Fprintf and friends are easily left
// unchecked, and a result that did not arrive must not look like success.
type result struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (r *result) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = launch.WithCode(launch.ExitStorage, fmt.Errorf("the result cannot be written: %w", err))
		}
		return n, r.err
	}
	return n, nil
}

// failed returns the error of the first write that failed.
func (r *result) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
