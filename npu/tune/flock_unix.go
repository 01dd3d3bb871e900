//go:build unix

package tune

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of a file, until it is closed. On a file system without locks it reports true.
func tryLock(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return err != unix.EWOULDBLOCK && err != unix.EINTR
}
