//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
)

const hugePage = 2 << 20

// buffer is mapped memory, outside of Go's heap.
type buffer struct {
	mu     sync.Mutex
	mapped []byte // nil after Free
	mem    []byte
}

// Alloc maps zeroed memory. From one huge page on it is aligned to huge pages and touched by all threads before Alloc returns,
// because the first touch of a page costs up to ten times a copy; it must not fall into the first step.
func (d *Device) Alloc(bytes int64) (npu.Buffer, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > 1<<46 {
		return nil, fmt.Errorf("cpu: alloc of %d bytes", bytes)
	}
	size := max(bytes, 1)
	if size >= hugePage {
		size = (size+hugePage-1)/hugePage*hugePage + hugePage
	}
	// Touching more than there is would call the out-of-memory killer, which gives no chance to say why.
	if free := available(); free > 0 && size > free {
		return nil, fmt.Errorf("cpu: alloc of %d bytes: only %d MiB of memory are available\nhint: a smaller batch, or fewer ranks on this machine", bytes, free>>20)
	}
	m, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("cpu: alloc of %d bytes: %w\nhint: a smaller batch, or fewer ranks on this machine", bytes, err)
	}
	b := &buffer{mapped: m, mem: m[:bytes:bytes]}
	if size >= hugePage {
		skip := int(-uintptr(unsafe.Pointer(&m[0])) & (hugePage - 1))
		whole := m[skip:][:size-hugePage]
		_ = unix.Madvise(whole, unix.MADV_HUGEPAGE) // advice: without huge pages it only runs slower
		if err := populate(whole, d.threads); err != nil {
			unix.Munmap(m)
			return nil, fmt.Errorf("cpu: alloc of %d bytes: %w\nhint: the machine or the memory limit of this process is too small; try a smaller batch", bytes, err)
		}
		b.mem = whole[:bytes:bytes]
	}
	return b, nil
}

// available is how much memory this process may still take, by the system and by its control group; 0 if that cannot be told.
func available() int64 {
	free := int64(0)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			var kb int64
			if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kb); n == 1 {
				free = kb << 10
			}
		}
	}
	limit, err1 := number("/sys/fs/cgroup/memory.max")
	used, err2 := number("/sys/fs/cgroup/memory.current")
	if err1 == nil && err2 == nil && (free == 0 || limit-used < free) {
		free = max(limit-used, 1)
	}
	return free
}

func number(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// populate touches all pages from several threads. The kernel does it in one call per range where it can (Linux 5.14), and
// reports there what would otherwise be a SIGBUS or the out-of-memory killer in the middle of training.
func populate(m []byte, threads int) error {
	pages := len(m) / hugePage
	threads = max(1, min(threads, pages/16))
	errs := make([]error, threads)
	var wg sync.WaitGroup
	for i := range threads {
		part := m[pages*i/threads*hugePage : pages*(i+1)/threads*hugePage]
		wg.Go(func() {
			err := unix.Madvise(part, unix.MADV_POPULATE_WRITE)
			for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				err = unix.Madvise(part, unix.MADV_POPULATE_WRITE)
			}
			if errors.Is(err, unix.EINVAL) { // older kernel
				for o := 0; o < len(part); o += 4096 {
					part[o] = 0
				}
				err = nil
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (b *buffer) Bytes() int64 { return int64(len(b.mem)) }
func (b *buffer) Host() []byte { return b.mem }

// Free unmaps the memory.
func (b *buffer) Free() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mapped == nil {
		return nil
	}
	m := b.mapped
	b.mapped, b.mem = nil, nil
	if err := unix.Munmap(m); err != nil {
		return fmt.Errorf("cpu: free: %w", err)
	}
	return nil
}

// span is n bytes at p.
func span(p npu.Ptr, n int64) ([]byte, error) {
	if p.IsNil() {
		return nil, errors.New("nil pointer")
	}
	h := p.Buf.Host()
	if h == nil && p.Buf.Bytes() > 0 {
		return nil, fmt.Errorf("memory of a device that the host cannot reach (%T)", p.Buf)
	}
	if p.Off < 0 || n < 0 || p.Off > int64(len(h)) || n > int64(len(h))-p.Off {
		return nil, fmt.Errorf("bytes %d…%d lie outside a buffer of %d", p.Off, p.Off+n, len(h))
	}
	return h[p.Off : p.Off+n : p.Off+n], nil
}
