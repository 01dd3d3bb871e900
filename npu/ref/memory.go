package ref

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// Memory says how the device treats memory: the value of Extra["memory"].
type memoryMode string

const (
	// hostMemory is the default: device memory is host memory, and kernels take any host memory.
	hostMemory memoryMode = "host"
	// separateMemory is memory that the host cannot access. Page-locked memory (AllocHost) is copied when the stream gets there; other host memory is
	// copied before CopyIn or CopyOut returns.
	separateMemory memoryMode = "separate"
	// strictMemory is separateMemory for tests: a copy from or to other host memory is refused; streams work as late as possible (see gate), so that
	// memory which is reused too early has the wrong contents; memory that is freed is overwritten.
	strictMemory memoryMode = "strict"
)

func parseMemory(s string) (memoryMode, error) {
	switch m := memoryMode(s); m {
	case "", hostMemory:
		return hostMemory, nil
	case separateMemory, strictMemory:
		return m, nil
	}
	return "", fmt.Errorf("ref: open: unknown memory %q\nhint: use one of host, separate, strict", s)
}

const alignment = 64

// buffer is Go memory.
type buffer struct {
	dev    *device
	mem    []byte
	hidden bool // from the host
	locked bool // host memory from AllocHost
}

func (b *buffer) Bytes() int64 { return int64(len(b.mem)) }

func (b *buffer) Host() []byte {
	if b.hidden {
		return nil
	}
	return b.mem
}

func (b *buffer) Free() error {
	if b.dev.memory == strictMemory {
		for i := range b.mem {
			b.mem[i] = 0xff // not a number, in every floating-point type
		}
	}
	if b.locked {
		b.dev.mu.Lock()
		b.dev.locked = slices.DeleteFunc(b.dev.locked, func(x *buffer) bool { return x == b })
		b.dev.mu.Unlock()
	}
	b.mem = nil
	return nil
}

func (d *device) Alloc(bytes int64) (npu.Buffer, error) {
	mem, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	return &buffer{dev: d, mem: mem, hidden: d.memory != hostMemory}, nil
}

// AllocHost returns host memory that copies may read late. Without separate memory it is like any other.
func (d *device) AllocHost(bytes int64) (npu.Buffer, error) {
	mem, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	b := &buffer{dev: d, mem: mem, locked: true}
	d.mu.Lock()
	d.locked = append(d.locked, b)
	d.mu.Unlock()
	return b, nil
}

func (d *device) alloc(bytes int64) (mem []byte, err error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	defer func() { // make panics on impossible sizes
		if r := recover(); r != nil {
			mem, err = nil, fmt.Errorf("ref: alloc of %d bytes: %v", bytes, r)
		}
	}()
	if bytes < 0 {
		return nil, fmt.Errorf("ref: alloc of %d bytes", bytes)
	}
	mem = make([]byte, bytes+alignment)
	skip := 0
	if r := uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % alignment; r != 0 {
		skip = int(alignment - r)
	}
	return mem[skip:][:bytes:bytes], nil
}

// span is n bytes of device memory at p.
func (d *device) span(p npu.Ptr, n int64) ([]byte, error) {
	if p.IsNil() {
		return nil, errors.New("nil pointer")
	}
	h := p.Buf.Host()
	if d.memory != hostMemory {
		b, ok := p.Buf.(*buffer)
		switch {
		case !ok:
			return nil, fmt.Errorf("memory of another device (%T)", p.Buf)
		case b.dev != d:
			return nil, errors.New("memory of another device")
		case b.locked:
			return nil, errors.New("page-locked host memory, which kernels cannot use")
		}
		h = b.mem
	}
	if p.Off < 0 || n < 0 || p.Off > int64(len(h)) || n > int64(len(h))-p.Off {
		return nil, fmt.Errorf("bytes %d…%d are outside a buffer of %d bytes", p.Off, p.Off+n, len(h))
	}
	return h[p.Off : p.Off+n : p.Off+n], nil
}

// isLocked reports whether all of b is page-locked memory of the device.
func (d *device) isLocked(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	lo := uintptr(unsafe.Pointer(&b[0]))
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.locked, func(l *buffer) bool {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(l.mem)))
		return lo >= at && lo+uintptr(len(b)) <= at+uintptr(len(l.mem))
	})
}

// source returns what an asynchronous copy may read later: src, or a copy of it.
func (d *device) source(src []byte) ([]byte, error) {
	if d.memory == hostMemory || d.isLocked(src) {
		return src, nil
	}
	if d.memory == strictMemory {
		return nil, errUnlocked
	}
	return bytes.Clone(src), nil
}

var errUnlocked = errors.New("ordinary host memory must not be copied asynchronously\nhint: take it from npu.AllocHost")
