package npu

import (
	"fmt"
	"unsafe"
)

// HostAllocator is a Device that has page-locked host memory. It copies asynchronously from and to such memory only. Any other host memory
// it copies before CopyIn or CopyOut returns, or through page-locked memory of its own, or it refuses the copy: the device says which.
type HostAllocator interface {
	// AllocHost returns zeroed page-locked host memory. Its Host is never nil, and it is not device memory: kernels cannot use it.
	AllocHost(bytes int64) (Buffer, error)
}

// AllocHost returns zeroed host memory for asynchronous copies: page-locked memory of a device that is a HostAllocator, else ordinary memory.
// Its Host is never nil.
func AllocHost(d Device, bytes int64) (Buffer, error) {
	if h, ok := d.(HostAllocator); ok {
		b, err := h.AllocHost(bytes)
		if err != nil {
			return nil, fmt.Errorf("npu: %d bytes of page-locked host memory for %s: %w", bytes, d.Info().Name, err)
		}
		return b, nil
	}
	if bytes < 0 {
		return nil, fmt.Errorf("npu: %d bytes of host memory", bytes)
	}
	return &ordinary{aligned(bytes)}, nil
}

// ordinary is Go memory. The garbage collector frees it, so work that is still enqueued when Free is called does no harm.
type ordinary struct{ mem []byte }

func (b *ordinary) Bytes() int64 { return int64(len(b.mem)) }
func (b *ordinary) Host() []byte { return b.mem }
func (b *ordinary) Free() error  { return nil }

// aligned returns n bytes at a multiple of 64, never nil.
func aligned(n int64) []byte {
	const to = 64
	mem := make([]byte, n+to)
	skip := 0
	if r := uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % to; r != 0 {
		skip = int(to - r)
	}
	return mem[skip:][:n:n]
}

// Utilization is a Device that measures how busy it is.
type Utilization interface {
	// Utilization is the share of time, in percent, in which the device's compute units were busy lately. ok is false if it cannot be read now.
	Utilization() (percent float64, ok bool)
}

// MemoryUse is a Device with memory of its own that tells how much of it is in use.
type MemoryUse interface {
	// MemoryUse is in bytes, with what libraries and other processes hold. ok is false if it cannot be read now.
	MemoryUse() (bytes int64, ok bool)
}
