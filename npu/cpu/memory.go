//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
)

const (
	page     = 4 << 10
	hugePage = 2 << 20
)

// colour is how far into its first page a large buffer begins: the k-th of a device an odd number of cache lines after the one before. Buffers that are walked
// together (weights, gradients, moments) would otherwise all begin at huge pages, and Zen's first-level cache takes addresses with equal bits 6…11 and an
// equal hash of the bits above for one another: at distances of 128 and 256 MiB, AdamW runs at a fifth of its speed in a cache, and at half in memory.
func colour(k int64) int { return int(k * 37 * 64 % page) }

// buffer is mapped memory outside Go's heap.
type buffer struct {
	mu     sync.Mutex
	mapped []byte // nil after Free
	mem    []byte
	touch  sync.WaitGroup // goroutines that touch the pages
}

// Alloc maps zeroed memory. A buffer of at least one huge page begins in the first page of one (see colour) and is touched in the background by as many
// goroutines as the device has threads: the first touch of a page costs up to ten times a copy (0.7 to 1.6 GB/s on a virtual machine). It overlaps with the
// compilation of kernels; otherwise it would slow the first step, or the start if Alloc waited for it.
func (d *Device) Alloc(bytes int64) (npu.Buffer, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > 1<<46 {
		return nil, fmt.Errorf("cpu: alloc of %d bytes", bytes)
	}
	size := max(bytes, 1)
	if size >= hugePage {
		size = (size+page+hugePage-1)/hugePage*hugePage + hugePage
	}
	// Touching more memory than is available would trigger the out-of-memory killer, which leaves no chance to report the reason.
	if free := here().available(); free > 0 && size > free {
		return nil, fmt.Errorf("cpu: alloc of %d bytes: only %d MiB of memory are available\nhint: use a smaller batch, or fewer ranks on this machine",
			bytes, free>>20)
	}
	m, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("cpu: alloc of %d bytes: %w\nhint: use a smaller batch, or fewer ranks on this machine", bytes, err)
	}
	b := &buffer{mapped: m, mem: m[:bytes:bytes]}
	if size >= hugePage {
		skip := int(-uintptr(unsafe.Pointer(&m[0])) & (hugePage - 1))
		first := colour(d.large.Add(1) - 1)
		huge, all := extent(first + int(bytes))
		whole := m[skip:][:all]
		_ = unix.Madvise(whole[:huge], unix.MADV_HUGEPAGE) // best effort: without huge pages it only runs slower
		if huge < all {
			_ = unix.Madvise(m[skip+huge:][:hugePage], unix.MADV_NOHUGEPAGE) // otherwise the end would take a whole one where all memory has huge pages
		}
		b.populate(whole, d.threads)
		b.mem = whole[first:][:bytes:bytes]
	}
	return b, nil
}

// extent divides n bytes into huge pages and small ones behind them, which take the end of a buffer if less than half a huge page would be in use: the buffers
// of a model are a few dozen, and half a megabyte of each is soon more than a layer's activations. It returns the bytes of huge pages and of all.
func extent(n int) (huge, all int) {
	huge = n / hugePage * hugePage
	if n-huge > hugePage/2 {
		return huge + hugePage, huge + hugePage
	}
	return huge, huge + (n-huge+page-1)/page*page
}

// populateAtOnce is how much one call of the kernel touches. It holds the lock of the address space meanwhile, and whoever maps memory waits for it.
const populateAtOnce = 2 * hugePage

// populate starts touching all pages. Present pages are unchanged, so the memory may be used meanwhile. An error is not lost, since the same page will fail
// on its first use.
func (b *buffer) populate(m []byte, threads int) {
	pages := len(m) / hugePage
	threads = max(1, min(threads, pages/16))
	for i := range threads {
		part := m[pages*i/threads*hugePage : pages*(i+1)/threads*hugePage]
		if i == threads-1 {
			part = m[pages*i/threads*hugePage:]
		}
		b.touch.Go(func() {
			for len(part) > 0 {
				n := min(populateAtOnce, len(part))
				err := unix.Madvise(part[:n], unix.MADV_POPULATE_WRITE) // Linux 5.14; older kernels add pages on first use
				switch {
				case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
					continue
				case err != nil:
					return
				}
				part = part[n:]
			}
		})
	}
}

func (b *buffer) Bytes() int64 { return int64(len(b.mem)) }
func (b *buffer) Host() []byte { return b.mem }

// Free unmaps the memory.
func (b *buffer) Free() error {
	b.touch.Wait()
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
		return nil, fmt.Errorf("bytes %d…%d are outside a buffer of %d bytes", p.Off, p.Off+n, len(h))
	}
	return h[p.Off : p.Off+n : p.Off+n], nil
}
