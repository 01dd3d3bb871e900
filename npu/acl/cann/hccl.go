//go:build cgo && linux

package cann

/*
#include "run.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"
)

// Comm is a communicator of HCCL.
type Comm uintptr

// RootInfoSize is the size of HcclRootInfo, which rank 0 makes and sends to all ranks.
const RootInfoSize = 4108

// LoadHCCL loads HCCL, if that has not been done. The methods below need it. It calls nothing of HCCL.
func (l *Lib) LoadHCCL() error {
	l.hcclMu.Lock()
	defer l.hcclMu.Unlock()
	if l.hcclTried {
		return l.hcclErr
	}
	l.hcclTried = true
	h, err := l.beside("libhccl.so")
	if err != nil {
		l.hcclErr = fmt.Errorf("cann: libhccl.so, which several ranks need, cannot be loaded (CANN %s): %w\nhint: install the package hccl of the same version, "+
			"and source set_env.sh", l.version, err)
		return l.hcclErr
	}
	l.resolve(h, C.GT_HCCL_FIRST, C.GT_HCCL_COUNT)
	if file := filepath.Join(l.dir, "libhcomm.so"); exists(file) { // 9.x keeps some functions there
		if h, err := dlopen(file); err == nil {
			l.paths = append(l.paths, file)
			l.resolve(h, C.GT_HCCL_FIRST, C.GT_HCCL_COUNT)
		}
	}
	return nil
}

// HcclRootInfo makes the root information, on rank 0.
func (l *Lib) HcclRootInfo() ([]byte, error) {
	info := make([]byte, RootInfoSize)
	err := l.check("HcclGetRootInfo", C.gt_HcclGetRootInfo(l.c, unsafe.Pointer(&info[0])))
	return info, err
}

// HcclConfigCapability says which fields of the configuration the library knows; 0 if it does not tell.
func (l *Lib) HcclConfigCapability() int { return int(C.gt_HcclGetCommConfigCapability(l.c)) }

// HcclInit makes a communicator, together with all other ranks: it blocks until they have come. config is an HcclCommConfig.
func (l *Lib) HcclInit(ranks int, root []byte, rank int, config []byte) (Comm, error) {
	if len(root) != RootInfoSize {
		return 0, fmt.Errorf("cann: root information of %d bytes, want %d", len(root), RootInfoSize)
	}
	var c Comm
	// The configuration has fields of 8 bytes, and a Go slice may begin anywhere.
	mem := C.CBytes(config)
	defer C.free(mem)
	err := l.check("HcclCommInitRootInfoConfig", C.gt_HcclCommInitRootInfoConfig(l.c, C.uint32_t(ranks), unsafe.Pointer(&root[0]), C.uint32_t(rank), mem,
		unsafe.Pointer(&c)))
	return c, err
}

// HcclDestroy destroys a communicator. The streams that it was used on must be idle. It may wait for the other ranks.
func (l *Lib) HcclDestroy(c Comm) error {
	return l.check("HcclCommDestroy", C.gt_HcclCommDestroy(l.c, pointer(c)))
}

// HcclAsyncError returns the error that the communicator met between calls, if the library can tell.
func (l *Lib) HcclAsyncError(c Comm) error {
	var result C.int32_t
	code := C.gt_HcclGetCommAsyncError(l.c, pointer(c), unsafe.Pointer(&result))
	if code == codeAbsent || code == 5 {
		return nil
	}
	if err := l.check("HcclGetCommAsyncError", code); err != nil {
		return err
	}
	return l.check("HcclGetCommAsyncError", result)
}

// HcclErrorString is HCCL's own name of a result; "" if it has none.
func (l *Lib) HcclErrorString(code int32) string {
	p := C.gt_HcclGetErrorString(l.c, C.int32_t(code))
	if p == nil {
		return ""
	}
	return C.GoString((*C.char)(p))
}

// HcclType is an HcclDataType.
type HcclType int32

// The element types of HCCL.
const (
	HcclInt8    HcclType = 0
	HcclInt16   HcclType = 1
	HcclInt32   HcclType = 2
	HcclFloat16 HcclType = 3
	HcclFloat32 HcclType = 4
	HcclInt64   HcclType = 5
	HcclUint64  HcclType = 6
	HcclUint8   HcclType = 7
	HcclFloat64 HcclType = 10
	HcclBF16    HcclType = 11
)

// HcclOp is an HcclReduceOp.
type HcclOp int32

// The reductions of HCCL.
const (
	HcclSum  HcclOp = 0
	HcclProd HcclOp = 1
	HcclMax  HcclOp = 2
	HcclMin  HcclOp = 3
)

// HcclAllReduce enqueues a reduction to all ranks; send may be recv. Counts are elements here and below.
func (l *Lib) HcclAllReduce(send, recv Addr, count int64, t HcclType, op HcclOp, c Comm, s Stream) error {
	return l.check("HcclAllReduce", C.gt_HcclAllReduce(l.c, pointer(send), pointer(recv), C.uint64_t(count), C.int32_t(t), C.int32_t(op), pointer(c), pointer(s)))
}

// HcclReduce enqueues a reduction to the rank root.
func (l *Lib) HcclReduce(send, recv Addr, count int64, t HcclType, op HcclOp, root int, c Comm, s Stream) error {
	return l.check("HcclReduce", C.gt_HcclReduce(l.c, pointer(send), pointer(recv), C.uint64_t(count), C.int32_t(t), C.int32_t(op), C.uint32_t(root),
		pointer(c), pointer(s)))
}

// HcclReduceScatter enqueues a reduction of which each rank gets its part of recvCount elements.
func (l *Lib) HcclReduceScatter(send, recv Addr, recvCount int64, t HcclType, op HcclOp, c Comm, s Stream) error {
	return l.check("HcclReduceScatter", C.gt_HcclReduceScatter(l.c, pointer(send), pointer(recv), C.uint64_t(recvCount), C.int32_t(t), C.int32_t(op),
		pointer(c), pointer(s)))
}

// HcclAllGather enqueues gathering sendCount elements of each rank on all.
func (l *Lib) HcclAllGather(send, recv Addr, sendCount int64, t HcclType, c Comm, s Stream) error {
	return l.check("HcclAllGather", C.gt_HcclAllGather(l.c, pointer(send), pointer(recv), C.uint64_t(sendCount), C.int32_t(t), pointer(c), pointer(s)))
}

// HcclBroadcast enqueues a copy from the rank root to all.
func (l *Lib) HcclBroadcast(buf Addr, count int64, t HcclType, root int, c Comm, s Stream) error {
	return l.check("HcclBroadcast", C.gt_HcclBroadcast(l.c, pointer(buf), C.uint64_t(count), C.int32_t(t), C.uint32_t(root), pointer(c), pointer(s)))
}

// HcclScatter enqueues sending parts of recvCount elements from the rank root.
func (l *Lib) HcclScatter(send, recv Addr, recvCount int64, t HcclType, root int, c Comm, s Stream) error {
	return l.check("HcclScatter", C.gt_HcclScatter(l.c, pointer(send), pointer(recv), C.uint64_t(recvCount), C.int32_t(t), C.uint32_t(root), pointer(c),
		pointer(s)))
}

// HcclAllToAll enqueues an exchange of count elements with each peer. send and recv must differ.
func (l *Lib) HcclAllToAll(send, recv Addr, count int64, t HcclType, c Comm, s Stream) error {
	return l.check("HcclAlltoAll", C.gt_HcclAlltoAll(l.c, pointer(send), C.uint64_t(count), C.int32_t(t), pointer(recv), C.uint64_t(count), C.int32_t(t),
		pointer(c), pointer(s)))
}

// HcclSend enqueues sending to a peer, which must receive.
func (l *Lib) HcclSend(buf Addr, count int64, t HcclType, peer int, c Comm, s Stream) error {
	return l.check("HcclSend", C.gt_HcclSend(l.c, pointer(buf), C.uint64_t(count), C.int32_t(t), C.uint32_t(peer), pointer(c), pointer(s)))
}

// HcclRecv enqueues receiving from a peer.
func (l *Lib) HcclRecv(buf Addr, count int64, t HcclType, peer int, c Comm, s Stream) error {
	return l.check("HcclRecv", C.gt_HcclRecv(l.c, pointer(buf), C.uint64_t(count), C.int32_t(t), C.uint32_t(peer), pointer(c), pointer(s)))
}

// HcclBarrier enqueues a barrier.
func (l *Lib) HcclBarrier(c Comm, s Stream) error {
	return l.check("HcclBarrier", C.gt_HcclBarrier(l.c, pointer(c), pointer(s)))
}
