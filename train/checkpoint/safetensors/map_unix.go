//go:build unix

package safetensors

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/gotrain/gotrain/train/foreign"
)

// Map maps a whole regular file into memory, read-only; the second result unmaps it. The warning of Open applies here too.
func Map(path string) ([]byte, func() error, error) {
	f, err := foreign.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.Size() == 0 {
		return nil, func() error { return nil }, nil // the system rejects an empty mapping; the header check reports it
	}
	if int64(int(st.Size())) != st.Size() {
		return nil, nil, errors.New("the file is larger than the address space")
	}
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return raw, sync.OnceValue(func() error { return syscall.Munmap(raw) }), nil
}
