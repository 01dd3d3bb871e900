//go:build !unix

package dirlock

import (
	"errors"
	"os"
)

func openPlain(path string) (*os.File, error) { return os.Open(path) }

func flock(*os.File, bool) (held bool, err error) { return false, errors.ErrUnsupported }
