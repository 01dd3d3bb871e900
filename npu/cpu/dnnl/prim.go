//go:build cgo && linux

package dnnl

// #include "lib.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Prim is generated code. It is freed by the garbage collector.
type Prim struct {
	pd *PD
	c  unsafe.Pointer
}

// Create generates the code. It takes milliseconds for a new shape.
func (p *PD) Create() (*Prim, error) {
	r := &Prim{pd: p}
	st := C.gt_prim(p.lib.c, p.c, C.int(p.threads), &r.c)
	if st != 0 {
		return nil, statusErr("primitive "+p.Impl(), st)
	}
	runtime.SetFinalizer(r, func(r *Prim) { C.gt_prim_free(r.pd.lib.c, r.c) })
	return r, nil
}

// PD is the descriptor that the code was made from.
func (r *Prim) PD() *PD { return r.pd }

// Arg is one argument of an execution: its number, descriptor and memory.
type Arg struct {
	ID  int
	MD  *MD
	Ptr unsafe.Pointer // not Go memory
}

// Exec is a primitive with its arguments.
type Exec struct {
	prim *Prim
	c    *C.gt_exec
}

// Bind fixes the arguments. The memory must stay where it is until Close.
func (r *Prim) Bind(args []Arg) (*Exec, error) {
	n := len(args)
	ids, mds, ptrs := make([]C.int, n+1), make([]unsafe.Pointer, n+1), make([]unsafe.Pointer, n+1)
	for i, a := range args {
		if a.MD == nil || a.Ptr == nil {
			return nil, fmt.Errorf("dnnl: argument %d of %s lacks a descriptor or memory", a.ID, r.pd.Impl())
		}
		ids[i], mds[i], ptrs[i] = C.int(a.ID), a.MD.c, a.Ptr
	}
	var st C.int
	e := C.gt_exec_new(r.pd.lib.c, r.c, C.int(n), unsafe.SliceData(ids), unsafe.SliceData(mds), unsafe.SliceData(ptrs), &st)
	runtime.KeepAlive(args)
	if st != 0 {
		return nil, statusErr("binding "+r.pd.Impl(), st)
	}
	x := &Exec{prim: r, c: e}
	runtime.SetFinalizer(x, (*Exec).Close)
	return x, nil
}

// Run executes in the calling thread (and its OpenMP team). It allocates nothing.
func (e *Exec) Run(s *Stream) error {
	return e.Status(int(C.gt_exec_run(unsafe.Pointer(e.c), s.c)))
}

// Command is Run for a C loop: status = fn(self, s.Handle()) with int (*fn)(void *self, void *stream). It is valid until Close.
func (e *Exec) Command() (fn, self unsafe.Pointer) {
	return C.gt_exec_run_address(), unsafe.Pointer(e.c)
}

// Status returns the error for a status of Command.
func (e *Exec) Status(st int) error {
	if st == 0 {
		return nil
	}
	return statusErr(e.prim.pd.Impl(), C.int(st))
}

// Close frees the argument list; idempotent.
func (e *Exec) Close() {
	if e.c != nil {
		C.gt_exec_free(e.c)
		e.c = nil
	}
}
