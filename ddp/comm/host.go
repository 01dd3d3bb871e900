package comm

import (
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// HostBuffer is an npu.Buffer over ordinary host memory that it does not own.
type HostBuffer struct{ mem []byte }

var _ npu.Buffer = (*HostBuffer)(nil)

// NewHostBuffer wraps a slice.
func NewHostBuffer(b []byte) *HostBuffer { return &HostBuffer{mem: b} }

// Bytes is the size.
func (b *HostBuffer) Bytes() int64 { return int64(len(b.mem)) }

// Host is the memory itself.
func (b *HostBuffer) Host() []byte { return b.mem }

// Free does nothing: the owner of the slice owns the memory.
func (b *HostBuffer) Free() error { return nil }

// Host returns the Mem over b as elements of type t, without trailing bytes of an incomplete element.
func Host(b []byte, t npu.DType) Mem {
	n := int64(0)
	if s := t.Size(); s > 0 {
		n = int64(len(b) / s)
	}
	return Mem{Ptr: npu.Ptr{Buf: NewHostBuffer(b)}, Elems: n, DType: t}
}

// Number is a Go type that corresponds to an npu.DType.
type Number interface {
	float32 | float64 | int32 | int64 | uint8 | int8
}

// DTypeOf returns the dtype of T.
func DTypeOf[T Number]() npu.DType {
	var z T
	switch any(z).(type) {
	case float32:
		return npu.F32
	case float64:
		return npu.F64
	case int32:
		return npu.I32
	case int64:
		return npu.I64
	case uint8:
		return npu.U8
	}
	return npu.I8
}

// HostOf returns the Mem over a slice of numbers.
func HostOf[T Number](s []T) Mem {
	t := DTypeOf[T]()
	if len(s) == 0 {
		return Host(nil, t)
	}
	return Host(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*t.Size()), t)
}

// View returns host memory of m as a slice of numbers. It panics if the host cannot access m or T is not its dtype:
// both are programming errors.
func View[T Number](m Mem) []T {
	if m.DType != DTypeOf[T]() {
		panic(fmt.Sprintf("comm: memory of %v viewed as %v", m.DType, DTypeOf[T]()))
	}
	if m.Elems == 0 {
		return nil
	}
	h := m.Host()
	if h == nil {
		panic("comm: the host cannot access this memory")
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&h[0])), m.Elems)
}
