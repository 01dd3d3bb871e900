package shm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// buffer is memory from Alloc: a region of the heap.
type buffer struct {
	c     *Comm
	base  int64 // of the region, in the file
	shift int64 // of the memory in the region
	size  int64 // of the region
	bytes int64 // as requested
	mem   []byte
	once  sync.Once
}

var _ npu.Buffer = (*buffer)(nil)

func (b *buffer) Bytes() int64 { return b.bytes }
func (b *buffer) Host() []byte { return b.mem }

// Free returns the memory to the system, even if peers still map it.
func (b *buffer) Free() error {
	b.once.Do(func() {
		b.mem = nil
		b.c.heap.drop(b.c.files.heap, b.base)
	})
	return nil
}

// Keep leaves the memory mapped after Close of the communicator, for a writer that cannot be stopped.
func (b *buffer) Keep() { b.c.heap.keep(b.base) }

// Alloc returns zeroed memory that all ranks can access.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("comm: shm: alloc of %d bytes", bytes)
	}
	if err := c.brokenError(); err != nil {
		return nil, err
	}
	if bytes == 0 {
		return &buffer{c: c, base: -1}, nil
	}
	shift := colour(c.rank)
	size := align(shift+bytes, c.heap.page)
	base := c.take(size)
	mem, err := c.heap.mapped(c.files.heap, base, size)
	if err != nil {
		return nil, fmt.Errorf("comm: shm: rank %d: %w", c.rank, err)
	}
	// Mapping has populated the range if possible, with huge pages if possible; this ensures it, or fails.
	if err := reserve(c.files.heap, base, size); err != nil {
		err = spaceError(c.files.heap, size, err)
		c.heap.drop(c.files.heap, base)
		return nil, fmt.Errorf("comm: shm: rank %d: %w", c.rank, err)
	}
	return &buffer{c: c, base: base, shift: shift, size: size, bytes: bytes, mem: mem[shift:][:bytes:bytes]}, nil
}

// colour is how far into its first page the memory of a rank begins. A collective reads and writes the memory of all ranks in step, and addresses with
// equal low bits compete for the same few places of the first-level cache. So each of 64 ranks begins elsewhere, an odd number of cache lines on.
func colour(rank int) int64 { return int64(rank) * 37 * 64 % pageBytes }

// take advances the end of the heap. File space is never reused: it costs nothing once its memory is released.
func (c *Comm) take(size int64) int64 {
	for {
		old := atomic.LoadUint64(&c.v.hdr.next)
		base := int64(old)
		if size >= hugeBytes {
			base = align(base, hugeBytes)
		}
		if atomic.CompareAndSwapUint64(&c.v.hdr.next, old, uint64(base+size)) {
			return base
		}
	}
}

// heap holds the regions that this rank has mapped, its own and those of peers.
type heap struct {
	page    int64 // regions begin at and consist of whole pages: 4 KiB, on some arm64 systems 64 KiB
	mu      sync.Mutex
	regions map[int64]mapping
	kept    []mapping
}

// mapped maps a region once. Regions of peers are mapped at their first use in a collective.
func (h *heap) mapped(fd int, base, bytes int64) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m, ok := h.regions[base]; ok {
		return m.mem, nil
	}
	if base%h.page != 0 || bytes%h.page != 0 { // a peer whose pages have another size
		return nil, fmt.Errorf("region %d+%d does not consist of pages of %d bytes", base, bytes, h.page)
	}
	m, err := mapRange(fd, base, bytes)
	if err != nil {
		return nil, err
	}
	m.warm()
	if h.regions == nil {
		h.regions = map[int64]mapping{}
	}
	h.regions[base] = m
	return m.mem, nil
}

func (h *heap) drop(fd int, base int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m, ok := h.regions[base]; ok {
		release(fd, base, int64(len(m.mem)))
		m.unmap()
		delete(h.regions, base)
	}
}

// keep forgets a region without unmapping it.
func (h *heap) keep(base int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.regions[base]; ok {
		h.kept = append(h.kept, h.regions[base])
		delete(h.regions, base)
	}
}

func (h *heap) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for base, m := range h.regions {
		m.unmap()
		delete(h.regions, base)
	}
}

// where locates m in the file: its offset and region, or -1 if it did not come from this communicator's Alloc.
func (c *Comm) where(m comm.Mem) (off, base, bytes int64) {
	b, ok := m.Ptr.Buf.(*buffer)
	if !ok || b.c != c || b.base < 0 || m.Elems == 0 {
		return -1, 0, 0
	}
	return b.base + b.shift + m.Ptr.Off, b.base, b.size
}

// reach returns the local address of the memory that a rank announced in its line.
func (c *Comm) reach(rank int, l *line) (unsafe.Pointer, error) {
	near := &c.near[rank]
	if near.base != l.base || near.mem == nil {
		mem, err := c.heap.mapped(c.files.heap, l.base, l.bytes)
		if err != nil {
			return nil, err
		}
		near.base, near.mem = l.base, mem
	}
	return unsafe.Pointer(&near.mem[l.off-l.base]), nil
}
