//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// errNotMine is returned by a maker's choose or build for an op that the next maker should try.
var errNotMine = errors.New("not supported here")

// maker is one way to execute ops of a kind.
type maker struct {
	// choose returns the op with the layouts that this way prefers.
	choose func(d *Device, op npu.Op) (npu.Op, error)
	// build prepares an op with concrete layouts.
	build func(d *Device, op npu.Op) (body, error)
	// widens: this way computes bf16 in float32 by itself where the processor lacks bf16.
	widens bool
}

// body is a prepared op. It is immutable, and shared by all kernels of equal ops.
type body interface {
	impl() string
	workspace() int64
	// bind fixes the memory: inputs, then outputs; nil for an unused output.
	bind(args []unsafe.Pointer, workspace unsafe.Pointer) (runner, error)
}

// runner is a body with its memory. If fn is not nil the stream calls fn(self, dnnl stream) in C, and fault explains a non-zero status; otherwise the
// stream calls run.
type runner interface {
	command() (fn, self unsafe.Pointer)
	fault(status int) error
	run() error
}

// kernel implements npu.Kernel.
type kernel struct {
	dev   *Device
	op    npu.Op
	body  body
	bytes []int64 // of each argument
}

var _ npu.Kernel = (*kernel)(nil)

func (k *kernel) Op() npu.Op       { return k.op }
func (k *kernel) Impl() string     { return k.body.impl() }
func (k *kernel) Workspace() int64 { return k.body.workspace() }
func (k *kernel) Close() error     { return nil }

// arg returns the desc of argument i, and whether it is an input.
func arg(op npu.Op, i int) (npu.Desc, bool) {
	if i < len(op.In) {
		return op.In[i], true
	}
	return op.Out[i-len(op.In)], false
}

// mayBeNil reports whether an output may be omitted: maxpool's index, and the statistics and per-channel gradients that kernels compute
// alongside their main result.
func mayBeNil(op npu.Op, out int) bool {
	k, err := kind.Lookup(op.Kind)
	return err == nil && k.MayBeNil(op.Attrs, out)
}

// Bind checks the arguments and fixes them.
func (k *kernel) Bind(args []npu.Ptr, workspace npu.Ptr) (npu.Launch, error) {
	n := len(k.op.In) + len(k.op.Out)
	if len(args) != n {
		return nil, fmt.Errorf("cpu: %s: bind: %d arguments for %d inputs and %d outputs", k.op.Kind, len(args), len(k.op.In), len(k.op.Out))
	}
	ptrs := make([]unsafe.Pointer, n)
	keep := make([]npu.Buffer, 0, n+1)
	for i, p := range args {
		d, in := arg(k.op, i)
		if p.IsNil() && !in && mayBeNil(k.op, i-len(k.op.In)) {
			continue
		}
		mem, err := span(p, k.bytes[i])
		if err != nil {
			what, at := "output", i-len(k.op.In)
			if in {
				what, at = "input", i
			}
			return nil, fmt.Errorf("cpu: %s: bind: %s %d, %s: %w", k.op.Kind, what, at, d, err)
		}
		ptrs[i] = unsafe.Pointer(unsafe.SliceData(mem))
		keep = append(keep, p.Buf)
	}
	var ws unsafe.Pointer
	if w := k.body.workspace(); w > 0 {
		mem, err := span(workspace, w)
		if err != nil {
			return nil, fmt.Errorf("cpu: %s: bind: workspace of %d bytes: %w", k.op.Kind, w, err)
		}
		ws = unsafe.Pointer(unsafe.SliceData(mem))
		if uintptr(ws)%64 != 0 {
			return nil, fmt.Errorf("cpu: %s: bind: workspace at offset %d is not aligned to 64 bytes", k.op.Kind, workspace.Off)
		}
		keep = append(keep, workspace.Buf)
	}
	r, err := k.body.bind(ptrs, ws)
	if err != nil {
		return nil, fmt.Errorf("cpu: %s: bind: %w", k.op, err)
	}
	l := &launch{kernel: k, runner: r, keep: keep}
	l.fn, l.self = r.command()
	return l, nil
}

// launch implements npu.Launch.
type launch struct {
	kernel   *kernel
	runner   runner
	fn, self unsafe.Pointer
	keep     []npu.Buffer // memory that C points to
}

func (l *launch) Kernel() npu.Kernel { return l.kernel }
