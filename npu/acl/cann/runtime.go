//go:build cgo && linux

package cann

/*
#include "run.h"
#include <stdlib.h>

// These write to a variable of the caller and do not keep its address, so it need not be allocated.
#cgo noescape gt_aclrtQueryEventStatus
#cgo noescape gt_aclrtEventGetTimestamp
#cgo noescape gt_aclrtGetMemInfo
#cgo noescape gt_aclrtGetDeviceUtilizationRate
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Handles of CANN and addresses that it manages. They are numbers to Go: nothing of them points into Go's memory.
type (
	Addr    uintptr // of device memory, or of page-locked host memory
	Stream  uintptr
	Event   uintptr
	Context uintptr
)

// pointer passes a number to C as the pointer that it is.
func pointer[T ~uintptr](h T) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&h)) }

// check makes an error of a code. It takes CANN's text at once: it belongs to the thread, and the next call replaces it.
func (l *Lib) check(call string, code C.int32_t) error {
	if code == 0 {
		return nil
	}
	return l.fail(call, "", int32(code))
}

func (l *Lib) fail(call, op string, code int32) *Error {
	detail := ""
	if code != codeAbsent && code != codeNoRoom {
		if p := C.gt_aclGetRecentErrMsg(l.c); p != nil {
			detail = C.GoString((*C.char)(p))
		}
		if strings.HasPrefix(call, "Hccl") {
			if name := l.HcclErrorString(code); name != "" {
				detail = strings.TrimSuffix(name+": "+detail, ": ")
			}
		}
	}
	return newError(call, op, code, detail)
}

// forget drops CANN's text about a call whose failure is an answer. It would turn up in the next real error.
func (l *Lib) forget() { C.gt_aclGetRecentErrMsg(l.c) }

// Init initialises CANN, once in a process. It stays initialised until the process ends: CANN cannot be initialised again after its end.
func (l *Lib) Init() error {
	l.initOnce.Do(func() {
		code := C.gt_aclInit(l.c, nil)
		if code == codeInitialised { // by another library of the process
			code = 0
		}
		l.initErr = l.check("aclInit", code)
	})
	return l.initErr
}

// DeviceCount is the number of devices that are visible.
func (l *Lib) DeviceCount() (int, error) {
	var n C.uint32_t
	err := l.check("aclrtGetDeviceCount", C.gt_aclrtGetDeviceCount(l.c, unsafe.Pointer(&n)))
	return int(n), err
}

// SetDevice makes a device current for the calling thread. The first call of a process takes seconds.
func (l *Lib) SetDevice(i int) error {
	return l.check("aclrtSetDevice", C.gt_aclrtSetDevice(l.c, C.int32_t(i)))
}

// ResetDevice gives up what SetDevice took.
func (l *Lib) ResetDevice(i int) error {
	return l.check("aclrtResetDevice", C.gt_aclrtResetDevice(l.c, C.int32_t(i)))
}

// CurrentContext is the context of the calling thread.
func (l *Lib) CurrentContext() (Context, error) {
	var c Context
	err := l.check("aclrtGetCurrentContext", C.gt_aclrtGetCurrentContext(l.c, unsafe.Pointer(&c)))
	return c, err
}

// SocName is the name of the chip, such as "Ascend910B3".
func (l *Lib) SocName() (string, error) {
	p := C.gt_aclrtGetSocName(l.c)
	if p == nil {
		return "", l.fail("aclrtGetSocName", "", 100000)
	}
	return C.GoString((*C.char)(p)), nil
}

// InterfaceVersion is the version of the ACL interface, such as "1.13.0", which is not that of CANN; "" if the library does not tell.
func (l *Lib) InterfaceVersion() string {
	var v [3]C.int32_t
	if C.gt_aclrtGetVersion(l.c, unsafe.Pointer(&v[0]), unsafe.Pointer(&v[1]), unsafe.Pointer(&v[2])) != 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// Attribute is a property of CANN and the chip.
type Attribute int32

// The attributes.
const (
	InfNaN   Attribute = 0 // arithmetic has infinities and NaN instead of saturation
	BFloat16 Attribute = 1
)

// Attribute reports whether the attribute is there.
func (l *Lib) Attribute(a Attribute) (bool, error) {
	var v C.int32_t
	err := l.check("aclGetCannAttribute", C.gt_aclGetCannAttribute(l.c, C.int32_t(a), unsafe.Pointer(&v)))
	return v == 1, err
}

// SetDeterministic makes the operators of the current context sum in a fixed order, or not.
func (l *Lib) SetDeterministic(on bool) error {
	v := C.int64_t(0)
	if on {
		v = 1
	}
	return l.check("aclrtCtxSetSysParamOpt", C.gt_aclrtCtxSetSysParamOpt(l.c, 0, v))
}

// SetInfNaN makes the current device compute with infinities and NaN instead of saturating.
func (l *Lib) SetInfNaN() error {
	return l.check("aclrtSetDeviceSatMode", C.gt_aclrtSetDeviceSatMode(l.c, 1))
}

// MemInfo is the free and the whole memory of the current device.
func (l *Lib) MemInfo() (free, total int64, err error) {
	var f, t C.size_t
	const hbm = 1
	err = l.check("aclrtGetMemInfo", C.gt_aclrtGetMemInfo(l.c, hbm, unsafe.Pointer(&f), unsafe.Pointer(&t)))
	return int64(f), int64(t), err
}

// Utilization is the load of the cube and of the vector units in percent; negative: not available.
func (l *Lib) Utilization(device int) (cube, vector int, err error) {
	var u struct {
		cube, vector, aicpu, memory C.int32_t
		ext                         uintptr
	}
	err = l.check("aclrtGetDeviceUtilizationRate", C.gt_aclrtGetDeviceUtilizationRate(l.c, C.int32_t(device), unsafe.Pointer(&u)))
	return int(u.cube), int(u.vector), err
}

// NewStream makes a stream of the current context that stops at the first failure.
func (l *Lib) NewStream() (Stream, error) {
	var s Stream
	const fastLaunch, fastSync = 1, 2
	err := l.check("aclrtCreateStreamWithConfig", C.gt_aclrtCreateStreamWithConfig(l.c, unsafe.Pointer(&s), 0, fastLaunch|fastSync))
	if err != nil {
		return 0, err
	}
	const stopOnFailure = 1
	if err = l.check("aclrtSetStreamFailureMode", C.gt_aclrtSetStreamFailureMode(l.c, pointer(s), stopOnFailure)); err != nil {
		_ = l.DestroyStream(s) // the first error counts
		return 0, err
	}
	return s, nil
}

// DestroyStream destroys a stream with all that is enqueued.
func (l *Lib) DestroyStream(s Stream) error {
	return l.check("aclrtDestroyStreamForce", C.gt_aclrtDestroyStreamForce(l.c, pointer(s)))
}

// SyncStream waits until the stream is done, at most some milliseconds. done is false if the time was too short.
func (l *Lib) SyncStream(s Stream, ms int) (done bool, err error) {
	code := C.gt_aclrtSynchronizeStreamWithTimeout(l.c, pointer(s), C.int32_t(ms))
	if code == CodeStreamTimeout {
		l.forget()
		return false, nil
	}
	return code == 0, l.check("aclrtSynchronizeStreamWithTimeout", code)
}

// AbortStream drops what is enqueued on a stream.
func (l *Lib) AbortStream(s Stream) error {
	return l.check("aclrtStreamAbort", C.gt_aclrtStreamAbort(l.c, pointer(s)))
}

// NewEvent makes an event that can be recorded any number of times, waited for and asked for its time.
func (l *Lib) NewEvent() (Event, error) {
	var e Event
	const syncFlag, timeLine = 1, 8
	err := l.check("aclrtCreateEventExWithFlag", C.gt_aclrtCreateEventExWithFlag(l.c, unsafe.Pointer(&e), syncFlag|timeLine))
	return e, err
}

// DestroyEvent destroys an event, reached or not.
func (l *Lib) DestroyEvent(e Event) error {
	return l.check("aclrtDestroyEvent", C.gt_aclrtDestroyEvent(l.c, pointer(e)))
}

// Record enqueues an event.
func (l *Lib) Record(e Event, s Stream) error {
	return l.check("aclrtRecordEvent", C.gt_aclrtRecordEvent(l.c, pointer(e), pointer(s)))
}

// WaitEvent makes later work of the stream wait for the event.
func (l *Lib) WaitEvent(s Stream, e Event) error {
	return l.check("aclrtStreamWaitEvent", C.gt_aclrtStreamWaitEvent(l.c, pointer(s), pointer(e)))
}

// Reached reports whether a recorded event has been reached.
func (l *Lib) Reached(e Event) (bool, error) {
	var status C.int32_t
	err := l.check("aclrtQueryEventStatus", C.gt_aclrtQueryEventStatus(l.c, pointer(e), unsafe.Pointer(&status)))
	return status == 1, err
}

// Timestamp is the device's time, in microseconds, at which an event was reached.
func (l *Lib) Timestamp(e Event) (uint64, error) {
	var t C.uint64_t
	err := l.check("aclrtEventGetTimestamp", C.gt_aclrtEventGetTimestamp(l.c, pointer(e), unsafe.Pointer(&t)))
	return uint64(t), err
}

// Malloc allocates device memory, in huge pages where they suffice. It is not zeroed.
func (l *Lib) Malloc(bytes int64) (Addr, error) {
	var p Addr
	const hugeFirst = 0
	err := l.check("aclrtMalloc", C.gt_aclrtMalloc(l.c, unsafe.Pointer(&p), C.uint64_t(bytes), hugeFirst))
	return p, err
}

// Free frees device memory. Nothing on the device may still use it.
func (l *Lib) Free(p Addr) error { return l.check("aclrtFree", C.gt_aclrtFree(l.c, pointer(p))) }

// MallocHost allocates page-locked host memory.
func (l *Lib) MallocHost(bytes int64) (Addr, error) {
	var p Addr
	err := l.check("aclrtMallocHost", C.gt_aclrtMallocHost(l.c, unsafe.Pointer(&p), C.uint64_t(bytes)))
	return p, err
}

// FreeHost frees page-locked host memory.
func (l *Lib) FreeHost(p Addr) error {
	return l.check("aclrtFreeHost", C.gt_aclrtFreeHost(l.c, pointer(p)))
}

// Host is page-locked memory as bytes. They are not Go's memory, and end with FreeHost.
func Host(p Addr, bytes int64) []byte { return unsafe.Slice((*byte)(pointer(p)), bytes) }

// HostAddr is the address of bytes of page-locked memory.
func HostAddr(b []byte) Addr { return Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// Direction is the direction of a copy.
type Direction int32

// The directions.
const (
	HostToDevice   Direction = 1
	DeviceToHost   Direction = 2
	DeviceToDevice Direction = 3
)

// Copy enqueues a copy. Host memory must be page-locked: the copy reads or writes it when the stream gets there.
func (l *Lib) Copy(dst, src Addr, bytes int64, d Direction, s Stream) error {
	n := C.uint64_t(bytes)
	return l.check("aclrtMemcpyAsync", C.gt_aclrtMemcpyAsync(l.c, pointer(dst), n, pointer(src), n, C.int32_t(d), pointer(s)))
}

// Zero enqueues clearing device memory.
func (l *Lib) Zero(p Addr, bytes int64, s Stream) error {
	n := C.uint64_t(bytes)
	return l.check("aclrtMemsetAsync", C.gt_aclrtMemsetAsync(l.c, pointer(p), n, 0, n, pointer(s)))
}
