package npu

import (
	"context"
	"time"
)

// Device is one accelerator, or the host playing one. A rank opens exactly one.
//
// Everything that runs is asynchronous: a Stream executes its work in order on a thread of the device's own, two
// streams run side by side, Events order them, and an error of a kernel surfaces at the next Sync, Event.Wait or later call on that
// stream, wrapped with the op's name. Methods of Device may be called from any goroutine.
type Device interface {
	Info() Info

	// Alloc gives zeroed device memory, aligned for every kernel (at least 64 bytes).
	Alloc(bytes int64) (Buffer, error)
	NewStream(name string) (Stream, error)
	NewEvent() (Event, error)

	// Has says whether Compile knows the kind with these attributes. The plan fuses only what the device has.
	Has(kind string, attrs Attrs) bool
	// Choose returns the op as the device's best kernel wants it: In and Out with concrete layouts, and In layouts changed
	// where the kernel does not take the given ones (the plan then inserts a Convert). An In or Out layout of Any is free.
	// An Out layout that is given and not Any is a wish; the device may answer with another.
	Choose(op Op) (Op, error)
	// Compile prepares a kernel for an op whose layouts are all concrete, as Choose returned it. It may be slow; it is
	// called before the first step only.
	Compile(op Op) (Kernel, error)
	// Bytes is the memory that a tensor takes, padding of its layout included.
	Bytes(d Desc) (int64, error)

	// Close releases all that the device owns; streams must be idle. Idempotent.
	Close() error
}

// Info says what a device is. A number that is not known is 0.
type Info struct {
	Name    string            // "cpu", "ref", "npu:0"
	Detail  string            // "oneDNN 2.6.3, avx512_core_amx, 1 thread"
	Threads int               // compute threads; 1 for accelerators
	Peak    map[DType]float64 // peak FLOP/s of a matmul by dtype, all threads together
	Memory  int64             // bytes that may be allocated
	Compute []DType           // dtypes in which activations may live, best for speed last
	Widened map[DType]DType   // of those, the ones without instructions: kernels compute in another, and only memory profits
	Slow    []string          // large ops compiled so far that plain loops execute, as the device has no fast kernel for them
}

// Buffer is device memory.
type Buffer interface {
	Bytes() int64
	// Host is the memory as host bytes, or nil where the host cannot reach it.
	Host() []byte
	// Free gives the memory back; idempotent. Nothing on a stream may use it any more.
	Free() error
}

// Ptr is a place in a Buffer.
type Ptr struct {
	Buf Buffer
	Off int64
}

// At moves the pointer.
func (p Ptr) At(off int64) Ptr { p.Off += off; return p }

// IsNil says whether the pointer points nowhere.
func (p Ptr) IsNil() bool { return p.Buf == nil }

// Kernel is a prepared op.
type Kernel interface {
	// Op is the op with its concrete layouts.
	Op() Op
	// Impl names the implementation, such as "dnnl:brgconv:avx512_core", "c:bn_train" or "go:concat".
	Impl() string
	// Workspace is the scratch memory in bytes that Bind wants; it holds nothing between launches, so kernels of one
	// stream may share it.
	Workspace() int64
	// Bind fixes the arguments, inputs then outputs in the op's order. An output may be the same place as an input only where
	// kinds.go says so. An unused output is the nil Ptr (kinds.go says which may be).
	Bind(args []Ptr, workspace Ptr) (Launch, error)
	Close() error
}

// Launch is a kernel with its arguments, ready to be put on a stream as often as wanted.
type Launch interface {
	Kernel() Kernel
}

// Stream executes work in order. One goroutine enqueues; the device executes on its own thread.
type Stream interface {
	Name() string
	// Run enqueues launches. The slice must not be changed until they ran. Allocates nothing.
	Run(batch []Launch) error
	// CopyIn enqueues host → device; src must stay untouched until it ran.
	CopyIn(dst Ptr, src []byte) error
	// CopyOut enqueues device → host; dst is valid after a Sync or an Event recorded later.
	CopyOut(dst []byte, src Ptr) error
	// Copy enqueues a device → device copy.
	Copy(dst, src Ptr, bytes int64) error
	// Do enqueues a host function, run in stream order; its error becomes the stream's.
	Do(fn func() error) error
	// Record enqueues the event; Wait makes later work of this stream wait for it.
	Record(Event) error
	Wait(Event) error
	// Sync blocks until all work enqueued so far ran, and returns the first error since the last Sync.
	Sync(ctx context.Context) error
	// Skip(true) makes the stream pass over kernels, copies and host functions, from the end of the kernel that runs now, those of a batch under
	// way included; events are reached as ever, so that nobody who waits for one is left. What was passed over has not been computed. Skip(false)
	// ends that for work enqueued from then on, once all work before it was passed over (Sync first). Any goroutine may call it.
	Skip(on bool)
	// Profile(true) makes the stream record the time of each launch; Profile(false) stops and returns what was recorded.
	Profile(on bool) []Sample
	Close() error
}

// Sample is the time that one launch took on the stream.
type Sample struct {
	Launch Launch
	Begin  time.Duration // since the stream was made
	Dur    time.Duration
}

// Event is a point in a stream. It may be recorded again and again; a wait is for its latest Record.
type Event interface {
	// Done says whether the latest Record has been reached.
	Done() bool
	// Sync blocks until then, or until ctx ends.
	Sync(ctx context.Context) error
	// At is when it was reached, since the device was opened; valid after Sync.
	At() time.Duration
	Close() error
}
