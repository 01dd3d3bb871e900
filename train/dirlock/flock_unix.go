//go:build unix

package dirlock

import (
	"errors"
	"os"
	"syscall"
)

// openPlain opens a file for reading without waiting for anybody, as a pipe would.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// flock takes a flock: an owner an exclusive one, who only asks a shared one, which needs no right to write. held says that another open file is in the way; an error,
// that the file system has none.
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
