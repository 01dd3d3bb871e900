//go:build cgo && linux

package cann

// #include "run.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// Object is a tensor, scalar, array or list that an operator takes. Its description is CANN's; the memory of a tensor is not part of it.
type Object struct {
	handle unsafe.Pointer
	kind   objectKind
}

type objectKind uint8

const (
	none objectKind = iota
	tensor
	scalar
	intArray
	floatArray
	boolArray
	tensorList
	text
)

// View describes a tensor in the terms of aclCreateTensor.
type View struct {
	DType   int32
	Format  int32
	Dims    []int64
	Strides []int64 // in elements
	Offset  int64   // in elements
	Storage int64   // elements of the memory at Base
	Base    Addr
}

// created makes an Object of what a constructor returned.
func (l *Lib) created(call string, p unsafe.Pointer, k objectKind) (Object, error) {
	if p == nil {
		return Object{}, l.fail(call, "", 161002)
	}
	return Object{p, k}, nil
}

// first is the address of a slice's elements for a C function that only reads them; a valid address where there are none.
func first[T any](s []T) unsafe.Pointer {
	if len(s) == 0 {
		return unsafe.Pointer(new(T))
	}
	return unsafe.Pointer(&s[0])
}

// Tensor makes a tensor.
func (l *Lib) Tensor(v View) (Object, error) {
	if len(v.Dims) != len(v.Strides) {
		return Object{}, fmt.Errorf("cann: a tensor with %d dimensions and %d strides", len(v.Dims), len(v.Strides))
	}
	storage := C.int64_t(v.Storage)
	n := C.uint64_t(len(v.Dims))
	p := C.gt_aclCreateTensor(l.c, first(v.Dims), n, C.int32_t(v.DType), first(v.Strides), C.int64_t(v.Offset), C.int32_t(v.Format),
		unsafe.Pointer(&storage), 1, pointer(v.Base))
	return l.created("aclCreateTensor", p, tensor)
}

// Tensors makes a list of tensors, which owns them from then on; if it fails they are destroyed.
func (l *Lib) Tensors(views []View) (Object, error) {
	handles := (*[1 << 20]unsafe.Pointer)(C.calloc(C.size_t(len(views)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(handles))
	fail := func(n int, err error) (Object, error) {
		for _, h := range handles[:n] {
			_ = l.Destroy(Object{h, tensor}) // the first error counts
		}
		return Object{}, err
	}
	for i, v := range views {
		t, err := l.Tensor(v)
		if err != nil {
			return fail(i, err)
		}
		handles[i] = t.handle
	}
	o, err := l.created("aclCreateTensorList", C.gt_aclCreateTensorList(l.c, unsafe.Pointer(handles), C.uint64_t(len(views))), tensorList)
	if err != nil {
		return fail(len(views), err)
	}
	return o, nil
}

// Types of elements that scalars may have, as numbers of aclDataType.
const (
	dtFloat, dtHalf, dtInt8, dtInt32, dtUint8, dtInt64, dtDouble, dtBool, dtBF16 = 0, 1, 2, 3, 4, 9, 11, 12, 27
)

// Scalar makes a scalar of a type from a number that the type holds exactly, or rounds.
func (l *Lib) Scalar(dtype int32, v float64) (Object, error) {
	var bits uint64 // little-endian, as all hosts of these devices are
	switch dtype {
	case dtFloat:
		bits = uint64(math.Float32bits(float32(v)))
	case dtDouble:
		bits = math.Float64bits(v)
	case dtInt8:
		bits = uint64(uint8(int8(v)))
	case dtUint8:
		bits = uint64(uint8(v))
	case dtInt32:
		bits = uint64(uint32(int32(v)))
	case dtInt64:
		bits = uint64(int64(v))
	case dtBool:
		if v != 0 {
			bits = 1
		}
	default:
		return Object{}, fmt.Errorf("cann: a scalar of type %d", dtype)
	}
	return l.created("aclCreateScalar", C.gt_aclCreateScalar(l.c, unsafe.Pointer(&bits), C.int32_t(dtype)), scalar)
}

// Ints makes an array of integers.
func (l *Lib) Ints(v []int64) (Object, error) {
	return l.created("aclCreateIntArray", C.gt_aclCreateIntArray(l.c, first(v), C.uint64_t(len(v))), intArray)
}

// Floats makes an array of floats.
func (l *Lib) Floats(v []float32) (Object, error) {
	return l.created("aclCreateFloatArray", C.gt_aclCreateFloatArray(l.c, first(v), C.uint64_t(len(v))), floatArray)
}

// Bools makes an array of bools.
func (l *Lib) Bools(v []bool) (Object, error) {
	return l.created("aclCreateBoolArray", C.gt_aclCreateBoolArray(l.c, first(v), C.uint64_t(len(v))), boolArray)
}

// Text makes a C string.
func (l *Lib) Text(s string) Object { return Object{unsafe.Pointer(C.CString(s)), text} }

// Destroy destroys an object. Executors that use it must be gone, but those that are used once may still run.
func (l *Lib) Destroy(o Object) error {
	switch o.kind {
	case tensor:
		return l.check("aclDestroyTensor", C.gt_aclDestroyTensor(l.c, o.handle))
	case scalar:
		return l.check("aclDestroyScalar", C.gt_aclDestroyScalar(l.c, o.handle))
	case intArray:
		return l.check("aclDestroyIntArray", C.gt_aclDestroyIntArray(l.c, o.handle))
	case floatArray:
		return l.check("aclDestroyFloatArray", C.gt_aclDestroyFloatArray(l.c, o.handle))
	case boolArray:
		return l.check("aclDestroyBoolArray", C.gt_aclDestroyBoolArray(l.c, o.handle))
	case tensorList:
		return l.check("aclDestroyTensorList", C.gt_aclDestroyTensorList(l.c, o.handle))
	case text:
		C.free(o.handle)
	}
	return nil
}
