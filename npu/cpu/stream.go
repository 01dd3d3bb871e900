//go:build cgo && linux && (amd64 || arm64)

package cpu

// #cgo CFLAGS: -O2 -Wall
// #include "command.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/queue"
)

const (
	queueLen = 1024 // tasks; a full queue blocks the caller
	chunkLen = 256  // commands in one C call
)

// stream is an OS thread with a queue.
type stream struct {
	*queue.Worker[task]
	dev     *Device
	threads int
	compute bool         // owns the device's threads
	born    int64        // CLOCK_MONOTONIC, ns
	dnn     *dnnl.Stream // nil without oneDNN

	commands *[chunkLen]C.gt_command // C memory
	times    *[chunkLen]C.gt_time    // C memory
	status   *C.int                  // C memory: a Go variable would be allocated for each call
	team     *kern.Team              // nil with one thread
	inTeam   *C.gt_team              // C memory: what gt_run needs of it
	skip     *uint32                 // C memory, because gt_run reads it between kernels; 1: see Skip

	skipMu sync.Mutex // guards skip against Skip after the end of the thread
}

// task is one entry of the queue, a value so that enqueueing allocates nothing.
type task struct {
	kind     taskKind
	batch    []npu.Launch
	dst, src []byte
	fn       func() error
	ev       *event
	n        uint64 // number of the event's Record
}

type taskKind uint8

const (
	taskRun taskKind = iota
	taskCopy
	taskDo
	taskRecord
	taskWait
)

// always reports whether a task runs even after an error.
func (t task) always() bool { return t.kind == taskRecord || t.kind == taskWait }

var _ npu.Stream = (*stream)(nil)

// NewStream starts a thread. The first stream has all threads of the device, later ones have one each.
func (d *Device) NewStream(name string) (npu.Stream, error) {
	s := &stream{dev: d, threads: 1, born: int64(C.gt_now()), Worker: queue.New("cpu", name, queueLen, task.always)}
	if d.lib != nil {
		var err error
		if s.dnn, err = d.lib.NewStream(); err != nil {
			return nil, fmt.Errorf("cpu: stream %s: %w", name, err)
		}
	}
	if err := d.adopt(s); err != nil {
		if s.dnn != nil {
			s.dnn.Close()
		}
		return nil, err
	}
	s.commands = (*[chunkLen]C.gt_command)(C.calloc(chunkLen, C.sizeof_gt_command))
	s.times = (*[chunkLen]C.gt_time)(C.calloc(chunkLen, C.sizeof_gt_time))
	s.status = (*C.int)(C.calloc(1, C.sizeof_int))
	s.skip = (*uint32)(C.calloc(1, 4))
	s.gather()
	started := make(chan error)
	go s.loop(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return s, nil
}

// gather makes the team for long runs of small kernels. Its threads spin only where each has a processor to itself, as far as can be known here.
func (s *stream) gather() {
	if s.threads < 2 {
		return
	}
	var mine unix.CPUSet
	cores := len(s.dev.cpus)
	if cores == 0 && unix.SchedGetaffinity(0, &mine) == nil {
		cores = mine.Count()
	}
	if s.team = kern.NewTeam(s.threads, s.threads <= cores && dnnl.Spins()); s.team.Self() == nil {
		s.team = nil // out of memory; OpenMP serves
		return
	}
	s.inTeam = (*C.gt_team)(C.calloc(1, C.sizeof_gt_team))
	s.inTeam.fn, s.inTeam.self = C.gt_fn(s.team.Exec()), s.team.Self()
	*(*unsafe.Pointer)(unsafe.Pointer(&s.inTeam.use)) = s.team.Use()
	*(*unsafe.Pointer)(unsafe.Pointer(&s.inTeam.join)) = s.team.Join()
}

// adopt registers s with the device, as its compute stream if it has none yet.
func (d *Device) adopt(s *stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	if !d.hasCompute {
		d.hasCompute, s.compute, s.threads = true, true, d.threads
	}
	d.streams[s] = true
	return nil
}

// prepare sets up the calling thread as the stream's.
func (s *stream) prepare() error {
	if cpus := s.dev.cpus; len(cpus) > 0 {
		var set unix.CPUSet
		for _, c := range cpus {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("cpu: stream %s: cannot bind to processors %v: %w", s.Name(), cpus, err)
		}
	}
	if s.dev.lib != nil {
		s.dev.lib.SetThreads(s.threads)
	}
	if s.team != nil {
		s.team.Start()
	}
	return nil
}

func (s *stream) loop(started chan<- error) {
	// Never unlocked: the thread has an affinity and an OpenMP team, and ends with the goroutine.
	runtime.LockOSThread()
	defer s.Ended()
	if err := s.prepare(); err != nil {
		s.drop()
		started <- err
		return
	}
	started <- nil
	s.Worker.Run(s.exec)
	s.drop()
}

// drop frees the thread's resources when it ends.
func (s *stream) drop() {
	if s.dnn != nil {
		s.dnn.Close()
	}
	C.free(unsafe.Pointer(s.commands))
	C.free(unsafe.Pointer(s.times))
	C.free(unsafe.Pointer(s.status))
	if s.team != nil {
		s.team.Close()
		C.free(unsafe.Pointer(s.inTeam))
	}
	s.skipMu.Lock()
	C.free(unsafe.Pointer(s.skip))
	s.skip = nil
	s.skipMu.Unlock()
	s.dev.mu.Lock()
	delete(s.dev.streams, s)
	if s.compute {
		s.dev.hasCompute = false
	}
	s.dev.mu.Unlock()
}

func (s *stream) exec(t task, failed error, profile bool) error {
	if s.skips() && !t.always() {
		return nil
	}
	switch t.kind {
	case taskRun:
		return s.runBatch(t.batch, profile)
	case taskCopy:
		copy(t.dst, t.src)
	case taskDo:
		return t.fn()
	case taskRecord:
		t.ev.Reach(t.n, failed)
	case taskWait:
		return t.ev.Await(context.Background(), t.n)
	}
	return nil
}

func (s *stream) Run(batch []npu.Launch) error {
	for i, l := range batch {
		if l, ok := l.(*launch); !ok || l.kernel.dev != s.dev {
			return fmt.Errorf("cpu: stream %s: launch %d of %d is of another device (%T)", s.Name(), i, len(batch), batch[i])
		}
	}
	return s.Post(task{kind: taskRun, batch: batch})
}

func (s *stream) CopyIn(dst npu.Ptr, src []byte) error {
	d, err := span(dst, int64(len(src)))
	if err != nil {
		return fmt.Errorf("cpu: stream %s: copy in: %w", s.Name(), err)
	}
	return s.Post(task{kind: taskCopy, dst: d, src: src})
}

func (s *stream) CopyOut(dst []byte, src npu.Ptr) error {
	m, err := span(src, int64(len(dst)))
	if err != nil {
		return fmt.Errorf("cpu: stream %s: copy out: %w", s.Name(), err)
	}
	return s.Post(task{kind: taskCopy, dst: dst, src: m})
}

func (s *stream) Copy(dst, src npu.Ptr, bytes int64) error {
	d, err1 := span(dst, bytes)
	m, err2 := span(src, bytes)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("cpu: stream %s: copy: %w", s.Name(), err)
	}
	return s.Post(task{kind: taskCopy, dst: d, src: m})
}

func (s *stream) Do(fn func() error) error {
	if fn == nil {
		return fmt.Errorf("cpu: stream %s: nil host function", s.Name())
	}
	return s.Post(task{kind: taskDo, fn: fn})
}

func (s *stream) Record(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("cpu: stream %s: record of an event of another device (%T)", s.Name(), e)
	}
	n := ev.Next()
	err := s.Post(task{kind: taskRecord, ev: ev, n: n})
	if err != nil {
		ev.Reach(n, err) // the task will not
	}
	return err
}

func (s *stream) Wait(e npu.Event) error {
	ev, ok := e.(*event)
	if !ok || ev.dev != s.dev {
		return fmt.Errorf("cpu: stream %s: wait for an event of another device (%T)", s.Name(), e)
	}
	return s.Post(task{kind: taskWait, ev: ev, n: ev.Latest()})
}

// Skip sets the flag that the thread checks between kernels.
func (s *stream) Skip(on bool) {
	s.skipMu.Lock()
	defer s.skipMu.Unlock()
	if s.skip != nil {
		v := uint32(0)
		if on {
			v = 1
		}
		atomic.StoreUint32(s.skip, v)
	}
}

// skips is for the thread's own use.
func (s *stream) skips() bool { return atomic.LoadUint32(s.skip) != 0 }
