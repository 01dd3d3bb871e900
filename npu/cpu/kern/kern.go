//go:build cgo && linux && (amd64 || arm64)

package kern

// #cgo CFLAGS: -O2 -g0 -std=gnu11 -Wall
// #cgo LDFLAGS: -lm -ldl -lpthread
// #include <stdlib.h>
// #include "kern.h"
//
// static kern_cmd *kern_new(int64_t sizes) { return calloc(1, sizeof(kern_cmd) + 8 * (size_t)sizes); }
// static void *kern_exec_address(int others) { return others ? (void *)kern_exec_others : (void *)kern_exec; }
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// maxArgs is the number of arguments that a kernel may have.
const maxArgs = C.KERN_ARGS

// Layouts of [N C H W] besides npu.Plain.
const (
	// NHWC has channels innermost.
	NHWC npu.Layout = "nhwc"
	// NChw16c is N, C/16, H, W, 16 channels; C is a multiple of 16.
	NChw16c npu.Layout = "nChw16c"
	// NChw8c is N, C/8, H, W, 8 channels; C is a multiple of 8.
	NChw8c npu.Layout = "nChw8c"
)

// Block is the number of channels in a block of the layout, or 0 if it has none.
func Block(l npu.Layout) int {
	switch l {
	case NChw16c:
		return 16
	case NChw8c:
		return 8
	}
	return 0
}

// Call is an op prepared for execution.
type Call struct {
	kernel    string // name in C
	isa       int
	dt, flags int
	n         []int64
	f         []float64
	v         []int64 // arrays of sizes
	slots     []int   // position of argument i, -1 for none; nil: in order
	inplace   []int   // inputs that the outputs must share memory with, if the kernel writes to its inputs
	workspace int64
	table     *table                           // constants in C, the last argument
	perThread func(c *Call, threads int) int64 // the workspace, if it depends on the number of threads
	tiles     int                              // flag of kernels with an AMX form
	products  int                              // where in v the command's products are
}

// prepare holds, by kind, the function that makes a Call of a well-formed op, or returns nil if no kernel supports it.
var prepare = map[string]func(op npu.Op) *Call{}

func register(kind string, fn func(op npu.Op) *Call) { prepare[kind] = fn }

// Prepare makes the Call of an op. Its layouts must be concrete. ok is false if the op is not well formed or no kernel supports it.
func Prepare(op npu.Op) (call *Call, ok bool) { return prepareFor(op, best()) }

func prepareFor(op npu.Op, isa int) (*Call, bool) {
	fn := prepare[op.Kind]
	if fn == nil || ref.Check(op) != nil {
		return nil, false
	}
	c := fn(op)
	if c == nil || len(c.slots) == 0 && len(op.In)+len(op.Out) > maxArgs {
		return nil, false
	}
	c.isa = isa
	if isa == C.KERN_V4 && useTiles() {
		c.flags |= c.tiles
	}
	c.ForThreads(runtime.NumCPU())
	if c.slots == nil {
		for i := range len(op.In) + len(op.Out) {
			c.slots = append(c.slots, i)
		}
	}
	return c, true
}

// Impl names the kernel and the instruction set, such as "c:bn_fwd:avx512".
func (c *Call) Impl() string {
	name := "c:" + c.kernel + ":" + isaNames[c.isa]
	if c.flags&c.tiles != 0 {
		name += "+amx"
	}
	return name
}

// ForThreads sets the maximum number of threads that will run the call (default: the number of processors), because some kernels need workspace per thread.
// If run with more threads they use only that many. Call it before Bind.
func (c *Call) ForThreads(n int) {
	if c.perThread != nil {
		c.workspace = c.perThread(c, max(n, 1))
	}
}

var isaNames = [...]string{C.KERN_BASE: "base", C.KERN_V3: "avx2", C.KERN_V4: "avx512"}

// Workspace is the scratch memory in bytes that Bind requires, 64-byte aligned. It holds no data between runs.
func (c *Call) Workspace() int64 { return c.workspace }

// Cmd is a Call with its memory, in C.
type Cmd struct {
	c        *C.kern_cmd
	table    *table // kept alive
	products int    // where in v they are
}

// Bind fixes the arguments, inputs then outputs in the op's order, and the workspace. Nil is allowed for the statistics that norms compute alongside y,
// for their gradients of weights, for cross_entropy's count and lse, and for attention's lse. threads is used by Command only. An output that
// npu/kinds.go defines as in place (those of optimizers) must be bound to its input's memory.
func (c *Call) Bind(args []unsafe.Pointer, workspace unsafe.Pointer, threads int) (*Cmd, error) {
	for i, in := range c.inplace {
		if args[len(c.slots)-len(c.inplace)+i] != args[in] {
			return nil, fmt.Errorf("kern: %s: output %d must share the memory of input %d, because the kernel works in place", c.kernel, i, in)
		}
	}
	k := C.kern_new(C.int64_t(len(c.v)))
	name := C.CString(c.kernel)
	k.fn = C.kern_find(name, C.int(c.isa))
	C.free(unsafe.Pointer(name))
	if k.fn == nil {
		panic("kern: no kernel " + c.kernel) // a name misspelt in this package
	}
	k.threads, k.dt, k.flags, k.ws = C.int32_t(threads), C.int32_t(c.dt), C.int32_t(c.flags), workspace
	for i, v := range c.n {
		k.n[i] = C.int64_t(v)
	}
	for i, v := range c.f {
		k.f[i] = C.double(v)
	}
	k.v = (*C.int64_t)(unsafe.Add(unsafe.Pointer(k), C.sizeof_kern_cmd))
	copy(unsafe.Slice((*int64)(unsafe.Pointer(k.v)), len(c.v)), c.v)
	for i, slot := range c.slots {
		if slot >= 0 {
			k.p[slot] = args[i]
		}
	}
	if c.table != nil {
		k.p[maxArgs-1] = c.table.mem
	}
	cmd := &Cmd{k, c.table, c.products}
	runtime.AddCleanup(cmd, func(k *C.kern_cmd) { C.free(unsafe.Pointer(k)) }, k)
	return cmd, nil
}

// Run executes the command with the given number of threads; 0 leaves it to OpenMP.
func (c *Cmd) Run(threads int) error {
	status := C.kern_run(c.c, C.int(threads))
	if status == 0 {
		runtime.KeepAlive(c)
		return nil
	}
	return c.Err()
}

// Command is the C function int fn(void *self, void *stream) that executes the command, and its self. The stream is ignored. self lives as long as c.
func (c *Cmd) Command() (fn, self unsafe.Pointer) {
	return C.kern_exec_address(C.int(bit(c.products > 0, 1))), unsafe.Pointer(c.c)
}

// Err returns the error of the last execution, or nil.
func (c *Cmd) Err() error {
	defer runtime.KeepAlive(c)
	if s := C.GoString(&c.c.err[0]); s != "" {
		return errors.New(s)
	}
	return nil
}

// act is the C code of an activation's type.
func act(t npu.DType) (code int, ok bool) {
	switch t {
	case npu.F32:
		return C.KERN_F32, true
	case npu.BF16:
		return C.KERN_BF16, true
	}
	return 0, false
}

// order describes x [N C …] in memory: the C code of its layout, and the size of a plane.
func order(x npu.Desc) (code int, hw int64, ok bool) {
	if len(x.Shape) < 2 {
		return 0, 0, false
	}
	hw = npu.Shape(x.Shape[2:]).Elems()
	block := Block(x.Layout)
	switch {
	case x.Layout == npu.Plain && hw == 1, x.Layout == NHWC && len(x.Shape) == 4:
		return C.KERN_ROWS, hw, true
	case x.Layout == npu.Plain:
		return C.KERN_PLANES, hw, true
	case block > 0 && len(x.Shape) == 4 && x.Shape[1]%block == 0:
		return block, hw, true
	}
	return 0, 0, false
}

// alike reports whether all descs have the layout and type of the first.
func alike(ds ...npu.Desc) bool {
	for _, d := range ds {
		if d.Layout != ds[0].Layout || d.DType != ds[0].DType {
			return false
		}
	}
	return true
}

// plainF32 reports whether all are plain and of type F32.
func plainF32(ds ...npu.Desc) bool {
	for _, d := range ds {
		if d.Layout != npu.Plain || d.DType != npu.F32 {
			return false
		}
	}
	return true
}

func bit(b bool, flag int) int {
	if b {
		return flag
	}
	return 0
}

// setGrain changes the number of elements below which a thread is not worth waking, for tests of small tensors.
func setGrain(elems int64) { C.kern_grain = C.int64_t(elems) }
