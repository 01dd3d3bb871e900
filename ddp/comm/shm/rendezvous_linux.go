package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"golang.org/x/sys/unix"
)

// create makes the file of a job. It has no name until it is complete and locked by rank 0, so that whoever finds the name can rely
// on both; a name whose rank 0 holds no lock is a leftover.
func create(path string, size int) (files, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return files{}, fmt.Errorf("making a file in %s: %w\nhint: the directory must be a tmpfs that this user may write", filepath.Dir(path), err)
	}
	f := files{control: fd, heap: fd}
	if heap, err := anonymous(); err == nil {
		f.heap = heap
	}
	if err = lock(fd, 0); err == nil {
		err = initialise(f, size)
	}
	if err == nil {
		err = name(fd, path)
	}
	if err != nil {
		f.close()
		return files{}, err
	}
	return f, nil
}

// name links the file to its path, in place of a leftover if there is one.
func name(fd int, path string) error {
	for range 3 {
		err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		if pid, alive := owner(path); alive {
			return fmt.Errorf("a job of this name is starting (pid %d holds %s)\nhint: give each job its own id", pid, path)
		}
		os.Remove(path)
	}
	return fmt.Errorf("%s keeps coming back", path)
}

// owner says whether the rank 0 that made the file at path lives.
func owner(path string) (pid uint32, alive bool) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, !errors.Is(err, unix.ENOENT)
	}
	defer closeFD(fd)
	if !held(fd, 0, 1) {
		return 0, false
	}
	if m, err := mapRange(fd, 0, layoutOf(1).slots); err == nil {
		pid = viewOf(m.mem, 1).block[0].pid
		m.unmap()
	}
	return pid, true
}

// attach opens the file of rank 0 and takes this rank's lock.
func attach(ctx context.Context, path string, cfg Config, begin time.Time) (files, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		fd, err := tryAttach(path, cfg)
		if err != nil {
			return files{}, err
		}
		if fd >= 0 {
			return files{control: fd, heap: openHeap(fd)}, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return files{}, context.Cause(ctx)
			}
			return files{}, &comm.TimeoutError{Call: "join", After: time.Since(begin), Missing: []int{0}}
		}
	}
}

// tryAttach gives -1 without error if rank 0 is not there yet.
func tryAttach(path string, cfg Config) (int, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", path, err)
	}
	if !held(fd, 0, 1) { // left by a dead job: rank 0 of ours will replace it
		closeFD(fd)
		return -1, nil
	}
	err = matches(fd, cfg.Size)
	if err == nil {
		if err = lock(fd, cfg.Rank); errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("there is another rank %d\nhint: each process needs its own rank; two jobs need two ids", cfg.Rank)
		}
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// matches compares the header with what this rank expects.
func matches(fd, size int) error {
	m, err := mapRange(fd, 0, pageBytes)
	if err != nil {
		return err
	}
	defer m.unmap()
	h := viewOf(m.mem, 0).hdr
	switch {
	case atomic.LoadUint64(&h.magic) != magic:
		return errors.New("the file is not one of gotrain's")
	case h.version != version:
		return fmt.Errorf("rank 0 runs another version of gotrain (protocol %d, this is %d)", h.version, version)
	case h.size != uint32(size):
		return fmt.Errorf("rank 0 expects %d ranks, this rank %d\nhint: all ranks must be started with the same world size", h.size, size)
	}
	return nil
}

// openHeap opens the anonymous heap through the process of rank 0. It gives -1 if that is not possible (other container, hardened /proc); then
// all ranks use the control file for the heap. If there is no anonymous heap it gives fd.
func openHeap(fd int) int {
	m, err := mapRange(fd, 0, pageBytes)
	if err != nil {
		return -1
	}
	defer m.unmap()
	h := viewOf(m.mem, 0).hdr
	if h.heapPid == 0 {
		return fd
	}
	heap, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", h.heapPid, h.heapFD), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	var b [8]byte
	if n, err := unix.Pread(heap, b[:], 0); err != nil || n != len(b) || binary.NativeEndian.Uint64(b[:]) != h.nonce {
		closeFD(heap) // a process of the same number in another namespace
		return -1
	}
	return heap
}

// sweep removes names whose jobs are dead: files of which no byte is locked.
func sweep(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s%d-*", prefix, os.Getuid())))
	for _, path := range names {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if !held(fd, 0, MaxSize) {
			os.Remove(path)
		}
		closeFD(fd)
	}
}
