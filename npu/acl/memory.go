//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// buffer is device memory.
type buffer struct {
	dev   *Device
	piece piece
	bytes int64
	freed atomic.Bool
}

var _ npu.Buffer = (*buffer)(nil)

func (b *buffer) Bytes() int64 { return b.bytes }

// Host is nil: the host cannot access device memory.
func (b *buffer) Host() []byte { return nil }

// Free gives the memory back to the arena.
func (b *buffer) Free() error {
	if b.freed.Swap(true) {
		return nil
	}
	err := b.dev.thread.clean(func() error {
		if !b.dev.quiet() {
			return nil
		}
		return b.dev.arena.release(b.piece)
	})
	if errors.Is(err, errClosed) {
		return nil // the device gave all memory back
	}
	if err != nil {
		return b.dev.wrap("free", err)
	}
	return nil
}

// Alloc returns zeroed device memory.
func (d *Device) Alloc(bytes int64) (npu.Buffer, error) {
	b, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) alloc(bytes int64) (*buffer, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > 1<<46 {
		return nil, fmt.Errorf("%s: alloc of %d bytes", d.name, bytes)
	}
	b := &buffer{dev: d, bytes: bytes}
	err := d.thread.do(context.Background(), func() (err error) {
		if b.piece, err = d.arena.alloc(bytes); err != nil {
			err = d.outOfMemory(bytes, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.serviceMu.Lock()
	defer d.serviceMu.Unlock()
	err = d.service.post(command{kind: clearMemory, to: cann.Addr(b.piece.addr()), bytes: b.piece.size})
	if err = errors.Join(err, d.service.Sync(context.Background())); err != nil {
		_ = b.Free() // the first error counts
		return nil, fmt.Errorf("%s: alloc of %d bytes: %w", d.name, bytes, err)
	}
	return b, nil
}

// outOfMemory adds sizes to an error of the arena. It runs on the thread.
func (d *Device) outOfMemory(bytes int64, err error) error {
	if full(err) {
		if free, total, merr := d.lib.MemInfo(); merr == nil {
			return fmt.Errorf("%s: alloc of %s: this process has %s, and %s of the device's %s are free: %w", d.name, amount.Bytes(bytes),
				amount.Bytes(d.arena.used), amount.Bytes(free), amount.Bytes(total), err)
		}
	}
	return fmt.Errorf("%s: alloc of %s: %w", d.name, amount.Bytes(bytes), err)
}

// hostBuffer is page-locked host memory.
type hostBuffer struct {
	dev  *Device
	addr cann.Addr
	mu   sync.Mutex
	mem  []byte // nil after Free
	n    int64
}

func (b *hostBuffer) Bytes() int64 { return b.n }
func (b *hostBuffer) Host() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mem
}

// lose makes the buffer one that was freed. It reports whether it was not.
func (b *hostBuffer) lose() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.mem != nil
	if had {
		b.dev.thread.pages.remove(b.mem)
		b.mem = nil
	}
	return had
}

// Free unlocks and frees the memory.
func (b *hostBuffer) Free() error {
	if !b.lose() {
		return nil
	}
	err := b.dev.thread.clean(func() error {
		delete(b.dev.locked, b)
		if !b.dev.quiet() {
			return nil
		}
		return b.dev.lib.FreeHost(b.addr)
	})
	if errors.Is(err, errClosed) {
		return nil
	}
	if err != nil {
		return b.dev.wrap("free of host memory", err)
	}
	return nil
}

var _ npu.HostAllocator = (*Device)(nil)

// AllocHost returns zeroed page-locked host memory, from and to which copies are asynchronous.
func (d *Device) AllocHost(bytes int64) (npu.Buffer, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > 1<<46 {
		return nil, fmt.Errorf("%s: alloc of %d bytes of host memory", d.name, bytes)
	}
	b := &hostBuffer{dev: d, n: bytes}
	size := roundUp(max(bytes, 1), 64)
	err := d.thread.do(context.Background(), func() (err error) {
		if b.addr, err = d.lib.MallocHost(size); err == nil {
			d.locked[b] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: alloc of %s of page-locked host memory: %w", d.name, amount.Bytes(bytes), err)
	}
	b.mem = cann.Host(b.addr, bytes)
	clear(b.mem)
	if bytes > 0 {
		d.thread.pages.add(b.mem)
	}
	return b, nil
}

// address is that of n bytes at p, on this device.
func (d *Device) address(p npu.Ptr, n int64) (cann.Addr, error) {
	b, ok := p.Buf.(*buffer)
	switch {
	case p.IsNil():
		return 0, errors.New("nil pointer")
	case !ok || b.dev != d:
		return 0, fmt.Errorf("memory of another device (%T)", p.Buf)
	case b.freed.Load():
		return 0, errors.New("memory that was freed")
	case p.Off < 0 || n < 0 || p.Off > b.bytes || n > b.bytes-p.Off:
		return 0, fmt.Errorf("bytes %d…%d are outside a buffer of %d bytes", p.Off, p.Off+n, b.bytes)
	}
	return cann.Addr(b.piece.addr() + uintptr(p.Off)), nil
}

// Memory is how much memory of the device this process holds, how much is free, and how much there is.
func (d *Device) Memory() (held, free, total int64, err error) {
	err = d.thread.do(context.Background(), func() (err error) {
		held = d.arena.taken
		free, total, err = d.lib.MemInfo()
		return err
	})
	return held, free, total, err
}
