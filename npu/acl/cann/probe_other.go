//go:build !(cgo && linux)

package cann

import "errors"

var errBuild = errors.New("this binary was built without cgo or not for Linux, and CANN needs both")

// Probe returns an error: this binary cannot load CANN.
func Probe(string, []string) ([]string, error) { return nil, errBuild }

// ReadDCMI returns an error: this binary cannot load the driver's library.
func ReadDCMI(string) ([]Card, error) { return nil, errBuild }

// CountDevices returns an error: this binary cannot load CANN.
func CountDevices() (int, error) { return 0, errBuild }
