package tcp

import (
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/npu"
)

// buffer is memory from Alloc: outside the Go heap, so it need not be pinned, and in huge pages if the kernel grants them.
type buffer struct {
	h     *heap
	whole []byte // nil if it is empty or freed
	mem   []byte
}

var _ npu.Buffer = (*buffer)(nil)

// Bytes is the size as requested.
func (b *buffer) Bytes() int64 { return int64(len(b.mem)) }

// Host is the memory, or nil after Free.
func (b *buffer) Host() []byte { return b.mem }

// Free returns the memory to the system.
func (b *buffer) Free() error {
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	if b.whole != nil {
		unmapMemory(b.whole)
		delete(b.h.all, b)
	}
	b.whole, b.mem = nil, nil
	return nil
}

// Keep leaves the memory mapped after Close of the communicator, for a writer that cannot be stopped.
func (b *buffer) Keep() {
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	delete(b.h.all, b)
}

// heap is the memory to unmap at Close.
type heap struct {
	mu  sync.Mutex
	all map[*buffer]bool
}

// Alloc returns zeroed memory.
func (c *Comm) Alloc(bytes int64) (npu.Buffer, error) {
	if bytes < 0 || bytes != int64(int(bytes)) {
		return nil, fmt.Errorf("comm: tcp: alloc of %d bytes", bytes)
	}
	if c.down.Load() {
		return nil, c.fault()
	}
	b := &buffer{h: &c.heap}
	if bytes == 0 {
		return b, nil
	}
	var err error
	if b.whole, b.mem, err = mapMemory(int(bytes)); err != nil {
		return nil, fmt.Errorf("comm: tcp: rank %d: %d bytes of memory: %w\nhint: free memory on this host, or raise its limit (ulimit -v, cgroup)",
			c.jobs[c.rank], bytes, err)
	}
	c.heap.mu.Lock()
	defer c.heap.mu.Unlock()
	if c.heap.all == nil {
		c.heap.all = map[*buffer]bool{}
	}
	c.heap.all[b] = true
	return b, nil
}

func (h *heap) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range h.all {
		unmapMemory(b.whole)
	}
	h.all = nil
}
