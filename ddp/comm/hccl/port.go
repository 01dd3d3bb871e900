package hccl

import (
	"context"

	"github.com/gotrain/gotrain/npu"
)

// port is what the transport needs of a device beyond the contract: its thread, its streams as HCCL sees them, and HCCL itself. Package acl has it
// (port_acl.go); tests have one in plain Go.
type port interface {
	npu.Device
	// OnThread runs f on the thread of the device, where HCCL must be called, and waits for it or until ctx ends; f then runs nevertheless.
	OnThread(ctx context.Context, f func() error) error
	// Last is OnThread for what must be done even if the device is lost.
	Last(ctx context.Context, f func() error) error
	// Hold tells that HCCL keeps what it has on the device until the process ends; with on = false, that it does not after all.
	Hold(ctx context.Context, on bool) error
	// Rail makes a stream for collectives.
	Rail(name string) (rail, error)
	// HCCL loads the library.
	HCCL() (library, error)
	// Address is where memory lies on the device.
	Address(p npu.Ptr, bytes int64) (uintptr, error)
	Facts() facts
}

// facts are what the settings and the comparison of ranks need to know of a device; "" is unknown.
type facts struct {
	family        string // "A2", "A3"
	physical      string // number of the physical device on this host
	deterministic bool   // its kernels sum in a fixed order
}

// rail is a stream on which collectives run.
type rail interface {
	npu.Stream
	// Raw enqueues f, which gives work to the stream. It runs on the device's thread; its error becomes the stream's.
	Raw(f func(stream uintptr) error) error
	// Abort drops what is on the stream, running collectives included. The stream, or even the device, fails from then on, with the cause.
	Abort(ctx context.Context, cause error) error
}

// library is HCCL. Every method must be called on the device's thread. Counts are elements; t and op are HCCL's numbers.
type library interface {
	RootInfo() ([]byte, error)
	Init(ranks int, root []byte, rank int, config []byte) (group uintptr, err error)
	Destroy(group uintptr) error
	AsyncError(group uintptr) error

	AllReduce(send, recv uintptr, count int64, t, op int32, group, stream uintptr) error
	Reduce(send, recv uintptr, count int64, t, op int32, root int, group, stream uintptr) error
	ReduceScatter(send, recv uintptr, recvCount int64, t, op int32, group, stream uintptr) error
	AllGather(send, recv uintptr, sendCount int64, t int32, group, stream uintptr) error
	Broadcast(buf uintptr, count int64, t int32, root int, group, stream uintptr) error
	AllToAll(send, recv uintptr, count int64, t int32, group, stream uintptr) error
}
