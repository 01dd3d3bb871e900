//go:build cgo && linux

package cann

// #include "run.h"
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// Arg is an argument of an operator: an object (the zero Object is NULL), an integer (bool and enums too) or a real number, as its code in package abi
// says.
type Arg struct {
	Object Object
	Int    int64
	Float  float64
}

// Sequence is a list of calls of operators that are launched together. It is C memory until Close.
type Sequence struct {
	lib   *Lib
	c     *C.gt_seq
	calls []C.gt_call // in C memory
	args  []unsafe.Pointer
	names []string
	fresh bool
}

// Fresh makes Prepare treat all operators as ones that need a new executor for each launch.
func (s *Sequence) Fresh() { s.fresh = true }

// NewSequence makes room for n calls.
func (l *Lib) NewSequence(n int) *Sequence {
	s := &Sequence{lib: l, c: (*C.gt_seq)(C.calloc(1, C.sizeof_gt_seq))}
	mem := C.calloc(C.size_t(max(n, 1)), C.sizeof_gt_call)
	s.calls = unsafe.Slice((*C.gt_call)(mem), max(n, 1))[:0:n]
	s.c.calls = (*C.gt_call)(mem)
	return s
}

// Len is the number of calls.
func (s *Sequence) Len() int { return len(s.calls) }

// Name is the operator of call i.
func (s *Sequence) Name(i int) string { return s.names[i] }

// Add appends a call, whose arguments must fit the operator's row in package abi.
func (s *Sequence) Add(op string, args []Arg) error {
	row, known := abi.Find(op)
	index, ok := s.lib.ops[op]
	switch {
	case !known:
		return fmt.Errorf("cann: %s is not in the table of operators", op)
	case !ok:
		return newError("aclnn"+op, op, codeAbsent, "")
	case len(args) != len(row.Args):
		return fmt.Errorf("cann: %s has %d arguments, not %d", op, len(row.Args), len(args))
	case len(s.calls) == cap(s.calls):
		return errors.New("cann: the sequence is full")
	}
	mem := C.calloc(C.size_t(max(len(args), 1)), C.sizeof_gt_arg)
	slots := unsafe.Slice((*uint64)(mem), len(args)) // a union of 8 bytes
	for i, a := range args {
		switch code := row.Args[i].Code; code {
		case "dt", "int", "i8", "i64", "u64", "bool":
			slots[i] = uint64(a.Int)
		case "f32", "f64":
			slots[i] = math.Float64bits(a.Float)
		default:
			if want := kinds[code]; a.Object.kind != none && a.Object.kind != want {
				C.free(mem)
				return fmt.Errorf("cann: %s: argument %s is an object of another kind", op, row.Args[i].Name)
			}
			slots[i] = uint64(uintptr(a.Object.handle))
		}
	}
	s.calls = append(s.calls, C.gt_call{op: C.int32_t(index), args: (*C.gt_arg)(mem)})
	s.args, s.names = append(s.args, mem), append(s.names, op)
	s.c.n = C.int32_t(len(s.calls))
	return nil
}

var kinds = map[string]objectKind{"T": tensor, "To": tensor, "S": scalar, "IA": intArray, "FA": floatArray, "BA": boolArray, "TL": tensorList,
	"TLo": tensorList, "str": text}

// Prepare calls the first phase of call i and returns the workspace that it wants. Its executor serves all launches if the operator allows that (reused);
// otherwise each launch calls the first phase again.
func (s *Sequence) Prepare(i int) (workspace int64, reused bool, err error) {
	c := &s.calls[i]
	var size C.uint64_t
	var executor unsafe.Pointer
	code := C.gt_phase1(s.lib.c, c.op, c.args, &size, &executor)
	if code != 0 {
		return 0, false, s.failed(i, 1, int32(code))
	}
	if s.fresh {
		return int64(size), false, s.lib.check("aclDestroyAclOpExecutor", C.gt_aclDestroyAclOpExecutor(s.lib.c, executor))
	}
	// Directly after the first phase, on the same thread: CANN looks at what the thread's latest first phase left.
	code = C.gt_aclSetAclOpExecutorRepeatable(s.lib.c, executor)
	switch {
	case code == 0:
		c.executor, c.size = executor, size
		return int64(size), true, nil
	case notReusable(int32(code)):
		s.lib.forget()
		// It has no owner but us until a second phase consumes it.
		err := s.lib.check("aclDestroyAclOpExecutor", C.gt_aclDestroyAclOpExecutor(s.lib.c, executor))
		return int64(size), false, err
	}
	e := s.lib.fail("aclSetAclOpExecutorRepeatable", s.names[i], int32(code))
	C.gt_aclDestroyAclOpExecutor(s.lib.c, executor)
	return 0, false, e
}

// Measure calls the first phase of call i and returns the workspace that it wants. Each launch calls the first phase again: the call has arguments that change.
func (s *Sequence) Measure(i int) (workspace int64, err error) {
	c := &s.calls[i]
	var size C.uint64_t
	var executor unsafe.Pointer
	if code := C.gt_phase1(s.lib.c, c.op, c.args, &size, &executor); code != 0 {
		return 0, s.failed(i, 1, int32(code))
	}
	return int64(size), s.lib.check("aclDestroyAclOpExecutor", C.gt_aclDestroyAclOpExecutor(s.lib.c, executor))
}

// SetFloat changes an argument of call i that is a real number. It counts from the next first phase on.
func (s *Sequence) SetFloat(i, arg int, v float64) {
	*(*uint64)(unsafe.Add(s.args[i], 8*arg)) = math.Float64bits(v)
}

// Leave leaves call i out of launches from now on, or not.
func (s *Sequence) Leave(i int, out bool) {
	s.calls[i].left = 0
	if out {
		s.calls[i].left = 1
	}
}

// Left reports whether call i is left out.
func (s *Sequence) Left(i int) bool { return s.calls[i].left != 0 }

// Workspace gives all calls scratch memory.
func (s *Sequence) Workspace(p Addr, bytes int64) {
	for i := range s.calls {
		s.calls[i].workspace, s.calls[i].capacity = pointer(p), C.uint64_t(bytes)
	}
}

// failed makes the error of a call that ended with a code.
func (s *Sequence) failed(i, phase int, code int32) *Error {
	call := "aclnn" + s.names[i]
	if phase == 1 {
		call += "GetWorkspaceSize"
	}
	return s.lib.fail(call, s.names[i], code)
}

// Close destroys the executors and frees the memory. Nothing of the sequence may be on its way to a stream. The objects belong to the caller.
func (s *Sequence) Close() error {
	if s.c == nil {
		return nil
	}
	var errs []error
	for i := range s.calls {
		if e := s.calls[i].executor; e != nil {
			if code := C.gt_aclDestroyAclOpExecutor(s.lib.c, e); code != 0 {
				errs = append(errs, s.lib.fail("aclDestroyAclOpExecutor", s.names[i], int32(code)))
			}
		}
	}
	for _, a := range s.args {
		C.free(a)
	}
	C.free(unsafe.Pointer(s.c.calls))
	C.free(unsafe.Pointer(s.c))
	s.c, s.calls, s.args = nil, nil, nil
	return errors.Join(errs...)
}

// chunk is the number of sequences in one C call. Between calls the thread looks after other streams.
const chunk = 64

// Runner launches sequences. It is C memory until Close, so that a launch allocates nothing.
type Runner struct {
	lib  *Lib
	list *[chunk]*C.gt_seq
	at   *C.gt_at
}

// NewRunner makes a runner; a device has one.
func (l *Lib) NewRunner() *Runner {
	return &Runner{lib: l, list: (*[chunk]*C.gt_seq)(C.calloc(chunk, C.size_t(unsafe.Sizeof(uintptr(0))))), at: (*C.gt_at)(C.calloc(1, C.sizeof_gt_at))}
}

// Chunk is the most that Run takes.
func (r *Runner) Chunk() int { return chunk }

// Set puts a sequence in its place for Run.
func (r *Runner) Set(i int, s *Sequence) { r.list[i] = s.c }

// Run launches the first n sequences on a stream. It stops early when skip is set, and at the first call that fails: call i of sequence done.
func (r *Runner) Run(n int, s Stream, skip *Flag) (done, call, phase int, code int32) {
	rc := C.gt_cann_run(r.lib.c, &r.list[0], C.int32_t(n), pointer(s), skip.c, r.at)
	return int(r.at.seq), int(r.at.call), int(r.at.phase), int32(rc)
}

// One launches call i of a sequence.
func (r *Runner) One(q *Sequence, i int, s Stream) error {
	if code := C.gt_cann_one(r.lib.c, &q.calls[i], pointer(s), r.at); code != 0 {
		return q.failed(i, int(r.at.phase), int32(code))
	}
	return nil
}

// Failed is the error of a call that Run stopped at.
func (r *Runner) Failed(s *Sequence, call, phase int, code int32) *Error {
	e := s.failed(call, phase, code)
	if code == codeNoRoom {
		e.Detail = fmt.Sprintf("it wants %d bytes and has %d", uint64(r.at.wants), uint64(s.calls[call].capacity))
	}
	return e
}

// Counts are the calls of first and second phases so far.
func (r *Runner) Counts() (phase1, phase2 uint64) { return uint64(r.at.phase1), uint64(r.at.phase2) }

// Close frees the memory.
func (r *Runner) Close() {
	C.free(unsafe.Pointer(r.list))
	C.free(unsafe.Pointer(r.at))
	r.list, r.at = nil, nil
}

// Flag is a word of C memory that C code reads while Go sets it.
type Flag struct{ c *C.uint32_t }

// NewFlag makes a flag that is not set.
func NewFlag() *Flag { return &Flag{(*C.uint32_t)(C.calloc(1, 4))} }

// Close frees the memory.
func (f *Flag) Close() { C.free(unsafe.Pointer(f.c)); f.c = nil }
