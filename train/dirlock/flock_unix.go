//go:build unix

package dirlock

import (
	"errors"
	"os"
	"syscall"
)

// openPlain opens a file for reading and never blocks, as opening a pipe would.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// flock takes a flock: exclusive for an owner, shared for a probe, which needs no write permission. held reports that another open file holds it; an
// error means that the file system does not support it.
func flock(f *os.File, owner bool) (held bool, err error) {
	how := syscall.LOCK_SH
	if owner {
		how = syscall.LOCK_EX
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	if e := raw.Control(func(fd uintptr) { err = syscall.Flock(int(fd), how|syscall.LOCK_NB) }); e != nil {
		return false, e
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
