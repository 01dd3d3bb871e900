//go:build unix

package text

import (
	"os"
	"sync"
	"syscall"
)

// mapFile maps an open file of n > 0 bytes, read-only.
func mapFile(f *os.File, n int64) ([]byte, func() error, error) {
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(n), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return raw, sync.OnceValue(func() error { return syscall.Munmap(raw) }), nil
}
