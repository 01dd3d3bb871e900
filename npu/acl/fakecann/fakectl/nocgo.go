//go:build !cgo || !linux

package fakectl

import (
	"errors"

	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// Fake is a fake CANN in this process.
type Fake struct{}

var errNone = errors.New("fakectl: this program was built without cgo, or not for linux")

// Open returns an error: this program cannot load libraries.
func Open(string) (*Fake, error) { return nil, errNone }

// Set returns an error.
func (f *Fake) Set(_, _ string) error { return errNone }

// Stats returns an error.
func (f *Fake) Stats() (*fakecann.Stats, error) { return nil, errNone }

// Zero does nothing.
func (f *Fake) Zero() {}
