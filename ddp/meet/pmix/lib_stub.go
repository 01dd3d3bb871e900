//go:build !cgo || !linux

package pmix

import "errors"

// errBuild is the error of this program.
var errBuild = errors.New("this program was built without cgo or not for Linux, so it cannot load " + library)

func load(string) error { return errBuild }

func open(string) (lib, error) { return nil, errBuild }
