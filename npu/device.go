package npu

import (
	"context"
	"time"
)

// Device is one accelerator, or the host acting as one. A rank opens exactly one.
//
// Execution is asynchronous: a Stream executes its work in order on its own thread, streams run concurrently, Events order
// them, and a kernel's error surfaces at the next Sync, Event.Sync or later call on that stream, wrapped with the op's name.
// Methods of Device may be called from any goroutine.
type Device interface {
	Info() Info

	// Alloc returns zeroed device memory, aligned for every kernel (at least 64 bytes).
	Alloc(bytes int64) (Buffer, error)
	NewStream(name string) (Stream, error)
	NewEvent() (Event, error)

	// Has reports whether Compile supports the kind with these attributes. The plan fuses only into kinds that the device has.
	Has(kind string, attrs Attrs) bool
	// Choose returns the op as the device's best kernel expects it: In and Out with concrete layouts, and In layouts changed
	// if the kernel does not support the given ones (the plan then inserts a Convert). A layout of Any is free. An Out layout
	// other than Any is a preference; the device may return another.
	Choose(op Op) (Op, error)
	// Compile prepares a kernel for an op whose layouts are all concrete, as returned by Choose. It may be slow; it is only
	// called before the first step.
	Compile(op Op) (Kernel, error)
	// Bytes is the size of a tensor in memory, including the padding of its layout.
	Bytes(d Desc) (int64, error)

	// Close releases all resources of the device; streams must be idle. Idempotent.
	Close() error
}

// Info describes a device. An unknown number is 0.
type Info struct {
	Name    string            // "cpu", "ref", "npu:0"
	Family  string            // the name it is registered under: "cpu", "ref", "npu"
	Detail  string            // "oneDNN 2.6.3, avx512_core_amx, 1 thread"
	Threads int               // compute threads; 1 for accelerators
	Peak    map[DType]float64 // peak FLOP/s of a matmul by dtype, all threads together
	Memory  int64             // bytes that may be allocated
	Compute []DType           // dtypes for activations, the fastest last
	Widened map[DType]DType   // those without instructions, with the dtype that kernels compute in instead: they only save memory
	// Separate means that the host cannot access device memory: Buffer.Host is nil, and data move by copies on streams only.
	Separate bool
	// Unchecked means that kernels do not report labels, ids and positions that are out of range, and that their result is then undefined. Whoever
	// brings such data to the device checks them.
	Unchecked bool
	Slow      []string // large ops compiled so far that plain loops execute because the device has no fast kernel for them
}

// Buffer is device memory.
type Buffer interface {
	Bytes() int64
	// Host is the memory as host bytes, or nil if the host cannot access it.
	Host() []byte
	// Free releases the memory; idempotent. No work on a stream may still use it.
	Free() error
}

// Ptr is a position in a Buffer.
type Ptr struct {
	Buf Buffer
	Off int64
}

// At returns the pointer moved by off bytes.
func (p Ptr) At(off int64) Ptr { p.Off += off; return p }

// IsNil reports whether the pointer is nil.
func (p Ptr) IsNil() bool { return p.Buf == nil }

// Kernel is a prepared op.
type Kernel interface {
	// Op is the op with its concrete layouts.
	Op() Op
	// Impl names the implementation, such as "dnnl:brgconv:avx512_core", "c:bn_train" or "go:concat".
	Impl() string
	// Workspace is the scratch memory in bytes that Bind requires. It holds no data between launches, so kernels of one
	// stream may share it.
	Workspace() int64
	// Bind fixes the arguments, inputs then outputs in the op's order. An output may share memory with an input only where
	// kinds.go allows it. An unused output is the nil Ptr, where kinds.go allows it.
	Bind(args []Ptr, workspace Ptr) (Launch, error)
	Close() error
}

// Launch is a kernel with its arguments, which can be enqueued on a stream any number of times.
type Launch interface {
	Kernel() Kernel
}

// Stream executes work in order. One goroutine enqueues; the device executes on its own thread.
type Stream interface {
	Name() string
	// Run enqueues launches. The slice must not change until they have run. Allocates nothing.
	Run(batch []Launch) error
	// CopyIn enqueues host → device; src must not change until the copy has run. It is asynchronous where src is memory from AllocHost; a device
	// with page-locked memory may copy other memory before it returns, or refuse it (see HostAllocator).
	CopyIn(dst Ptr, src []byte) error
	// CopyOut enqueues device → host; dst is valid after a Sync, or after an Event recorded later. See CopyIn for dst.
	CopyOut(dst []byte, src Ptr) error
	// Copy enqueues a device → device copy.
	Copy(dst, src Ptr, bytes int64) error
	// Do enqueues a host function, which runs in stream order; its error becomes the stream's.
	Do(fn func() error) error
	// Record enqueues the event; Wait makes later work of this stream wait for it.
	Record(Event) error
	Wait(Event) error
	// Sync blocks until all work enqueued so far has run, and returns the first error since the last Sync.
	Sync(ctx context.Context) error
	// Skip(true) makes the stream skip kernels, copies and host functions as soon as the current kernel ends, including the rest of a running
	// batch. Events are still reached, so that no waiter hangs. Results of skipped work are undefined. Skip(false) ends this for work enqueued
	// later; call Sync first, so that all earlier work has been skipped. Any goroutine may call it.
	Skip(on bool)
	// Profile(true) makes the stream record the time of each launch; Profile(false) stops and returns what was recorded.
	Profile(on bool) []Sample
	Close() error
}

// Sample is the time of one launch on a stream.
type Sample struct {
	Launch Launch
	Begin  time.Duration // since the stream was created
	Dur    time.Duration
}

// Event is a point in a stream. It may be recorded repeatedly; a wait is for the latest Record.
type Event interface {
	// Done reports whether the latest Record has been reached.
	Done() bool
	// Sync blocks until then, or until ctx ends.
	Sync(ctx context.Context) error
	// At is the time since the device was opened at which it was reached; valid after Sync.
	At() time.Duration
	Close() error
}
