//go:build !cgo || !(linux || darwin)

package turbojpeg

import "errors"

var errNone = errors.New("turbojpeg: this binary was built without cgo")

// Available returns why the library cannot be used: the binary was built without it.
func Available() error { return errNone }

// Library is empty.
func Library() string { return "" }

// Decompressor cannot be made.
type Decompressor struct{}

// New fails.
func New() (*Decompressor, error) { return nil, errNone }

// Close does nothing.
func (d *Decompressor) Close() {}

// Header fails.
func (d *Decompressor) Header([]byte) (Header, error) { return Header{}, errNone }

// Decode fails.
func (d *Decompressor) Decode([]byte, Header, int, []byte) (string, error) { return "", errNone }
