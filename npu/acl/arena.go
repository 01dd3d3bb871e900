package acl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

const (
	alignment = 512      // of every allocation: whole lines for the copy engines and for collectives
	smallest  = 32 << 20 // of a block for small allocations
	hugePage  = 2 << 20
)

// arena hands out pieces of large blocks of device memory. Small allocations share blocks; a large one has a block of its own.
type arena struct {
	get    func(bytes int64) (uintptr, error) // takes a block, aligned to anything
	put    func(base uintptr) error
	limit  int64 // bytes of all blocks together; 0: none
	blocks []*block
	taken  int64 // bytes of all blocks
	used   int64 // bytes handed out
}

// block is memory of the device with its free spans, in order.
type block struct {
	start uintptr // as the device gave it
	base  uintptr // aligned
	size  int64   // from base
	free  []span
}

type span struct{ at, size int64 }

// piece is an allocation.
type piece struct {
	block *block
	at    int64
	size  int64
}

func (p piece) addr() uintptr { return p.block.base + uintptr(p.at) }

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// alloc finds room. The memory holds what it held before.
func (a *arena) alloc(bytes int64) (piece, error) {
	n := roundUp(max(bytes, 1), alignment)
	for _, b := range a.blocks {
		if at, ok := b.take(n); ok {
			a.used += n
			return piece{b, at, n}, nil
		}
	}
	size := roundUp(n, hugePage)
	if size < smallest {
		size = smallest
	}
	b, err := a.grow(size)
	if full(err) && size > roundUp(n, hugePage) {
		b, err = a.grow(roundUp(n, hugePage)) // the last megabytes of a device
	}
	if err != nil {
		return piece{}, err
	}
	at, _ := b.take(n)
	a.used += n
	return piece{b, at, n}, nil
}

// full reports whether an error means that the device has no more memory.
func full(err error) bool {
	var e *cann.Error
	return errors.As(err, &e) && (e.Code == cann.CodeOutOfMemory || e.Code == cann.CodeDeviceOutOfMemory)
}

// grow takes a block from the device.
func (a *arena) grow(size int64) (*block, error) {
	if a.limit > 0 && a.taken+size > a.limit {
		return nil, fmt.Errorf("%s of the %s that the option memory_mib allows are in use\nhint: raise memory_mib, or use a smaller batch",
			amount.Bytes(a.used), amount.Bytes(a.limit))
	}
	start, err := a.get(size + alignment)
	if err != nil {
		return nil, err
	}
	b := &block{start: start, base: (start + alignment - 1) / alignment * alignment, size: size, free: []span{{0, size}}}
	a.blocks = append(a.blocks, b)
	a.taken += size
	return b, nil
}

// take cuts n bytes from the first free span that has them.
func (b *block) take(n int64) (int64, bool) {
	for i := range b.free {
		s := &b.free[i]
		if s.size < n {
			continue
		}
		at := s.at
		s.at, s.size = s.at+n, s.size-n
		if s.size == 0 {
			b.free = slices.Delete(b.free, i, i+1)
		}
		return at, true
	}
	return 0, false
}

// release gives a piece back. A block without pieces goes back to the device, but for one small block and that of a limited arena.
func (a *arena) release(p piece) error {
	p.block.insert(span{p.at, p.size})
	a.used -= p.size
	if !p.block.empty() || a.limit > 0 {
		return nil
	}
	if p.block.size == smallest && !slices.ContainsFunc(a.blocks, func(b *block) bool { return b != p.block && b.size == smallest && b.empty() }) {
		return nil
	}
	return a.drop(p.block)
}

func (a *arena) drop(b *block) error {
	a.blocks = slices.DeleteFunc(a.blocks, func(o *block) bool { return o == b })
	a.taken -= b.size
	return a.put(b.start)
}

// clear gives all blocks back, whether or not pieces are in use.
func (a *arena) clear() error {
	var errs []error
	for len(a.blocks) > 0 {
		errs = append(errs, a.drop(a.blocks[0]))
	}
	a.used = 0
	return errors.Join(errs...)
}

func (b *block) empty() bool { return len(b.free) == 1 && b.free[0].size == b.size }

// insert adds a free span and joins it with its neighbours.
func (b *block) insert(s span) {
	i, _ := slices.BinarySearchFunc(b.free, s.at, func(f span, at int64) int { return int(min(1, max(-1, f.at-at))) })
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && b.free[i].at+b.free[i].size == b.free[i+1].at {
		b.free[i].size += b.free[i+1].size
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].at+b.free[i-1].size == b.free[i].at {
		b.free[i-1].size += b.free[i].size
		b.free = slices.Delete(b.free, i, i+1)
	}
}
