//go:build cgo && linux && (amd64 || arm64)

package cpu

// #include "command.h"
// #include <stdlib.h>
//
// static void *gt_sequence_address(void) { return (void *)gt_sequence_run; }
// static void *gt_zero_address(void) { return (void *)gt_zero_run; }
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

// sequence is a body of several steps that run one after another, with intermediate memory in the workspace.
type sequence struct {
	steps []step
	temp  int64 // bytes of intermediate memory at the start of the workspace
}

// step is a body (such as a primitive or a kernel of package kern), or a command of this package.
type step struct {
	body body
	args []place // one for each of the body's arguments
	// make returns the command if body is nil: a function, and its malloc'ed argument, which the launch frees.
	make func(args []unsafe.Pointer, ws unsafe.Pointer) (fn, self unsafe.Pointer)
}

// place is an offset into an argument of the op or into intermediate memory; a negative offset means none.
type place struct {
	arg int // -1: intermediate
	off int64
}

func (p place) in(args []unsafe.Pointer, ws unsafe.Pointer) unsafe.Pointer {
	switch {
	case p.off < 0:
		return nil
	case p.arg < 0:
		return unsafe.Add(ws, p.off)
	}
	if args[p.arg] == nil { // an unused output
		return nil
	}
	return unsafe.Add(args[p.arg], p.off)
}

func (s *sequence) impl() string {
	return "dnnl:" + strings.Join(s.products(), "+")
}

// products lists the library's implementations, each once.
func (s *sequence) products() []string {
	var names []string
	for _, st := range s.steps {
		var more []string
		switch b := st.body.(type) {
		case *prim:
			more = []string{b.code.PD().Impl()}
		case *sequence:
			more = b.products()
		}
		for _, n := range more {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// workspace is the intermediate memory, followed by the scratch memory that the steps share.
func (s *sequence) workspace() int64 {
	scratch := int64(0)
	for _, st := range s.steps {
		if st.body != nil {
			scratch = max(scratch, st.body.workspace())
		}
	}
	return s.temp + scratch
}

// bind fixes the memory of each step.
func (s *sequence) bind(args []unsafe.Pointer, ws unsafe.Pointer) (runner, error) {
	r := &sequenceRun{}
	n := len(s.steps)
	c := (*C.gt_sequence)(C.calloc(1, C.sizeof_gt_sequence+C.size_t(n)*C.sizeof_gt_command))
	runtime.AddCleanup(r, func(c *C.gt_sequence) { C.free(unsafe.Pointer(c)) }, c)
	r.c = c
	commands := unsafe.Slice((*C.gt_command)(unsafe.Add(unsafe.Pointer(c), C.sizeof_gt_sequence)), n)
	for i, st := range s.steps {
		if st.body == nil {
			fn, self := st.make(args, ws)
			runtime.AddCleanup(r, func(p unsafe.Pointer) { C.free(p) }, self)
			commands[i] = C.gt_command{fn: C.gt_fn(fn), self: self}
			r.parts = append(r.parts, nil)
			continue
		}
		ptrs := make([]unsafe.Pointer, len(st.args))
		for j, p := range st.args {
			ptrs[j] = p.in(args, ws)
		}
		part, err := st.body.bind(ptrs, unsafe.Add(ws, s.temp))
		if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i, st.body.impl(), err)
		}
		r.parts = append(r.parts, part)
		fn, self := part.command()
		commands[i] = C.gt_command{fn: C.gt_fn(fn), self: self}
	}
	c.n = C.int(n)
	return r, nil
}

// sequenceRun is a sequence with its memory.
type sequenceRun struct {
	c     *C.gt_sequence
	parts []runner
}

func (r *sequenceRun) command() (fn, self unsafe.Pointer) {
	return C.gt_sequence_address(), unsafe.Pointer(r.c)
}

func (r *sequenceRun) fault(status int) error {
	if i := int(r.c.failed); i < len(r.parts) && r.parts[i] != nil {
		return r.parts[i].fault(status)
	}
	return fmt.Errorf("status %d", status)
}

func (r *sequenceRun) run() error { panic("cpu: a sequence runs as a command") }

// zeroStep fills n bytes with zeros.
func zeroStep(at place, n int64) step {
	return step{make: func(args []unsafe.Pointer, ws unsafe.Pointer) (fn, self unsafe.Pointer) {
		z := (*C.gt_zero)(C.calloc(1, C.sizeof_gt_zero))
		z.at, z.bytes = at.in(args, ws), C.size_t(n)
		return C.gt_zero_address(), unsafe.Pointer(z)
	}}
}

// reorderStep copies between two descriptors of the same dims.
func (d *Device) reorderStep(from *dnnl.MD, a place, to *dnnl.MD, b place) (step, error) {
	pd, err := d.lib.Reorder(from, to, d.threads)
	if err != nil {
		return step{}, notMine(err)
	}
	p, err := newPrim(pd, primArg{dnnl.ArgSrc, from}, primArg{dnnl.ArgDst, to})
	return step{body: p, args: []place{a, b}}, err
}
