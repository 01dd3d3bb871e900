//go:build cgo && linux

package acl

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// Raw is a device as CANN sees it. It is for ddp/comm/hccl, whose library works on the device's streams and memory, and for nobody else.
type Raw struct {
	Lib     *cann.Lib
	Index   int // as CANN counts, after ASCEND_RT_VISIBLE_DEVICES
	Context cann.Context
	// Deterministic is the device's option.
	Deterministic bool
}

// Is reports whether a device is an NPU of this package, so that the functions below serve it.
func Is(d npu.Device) bool { _, ok := d.(*Device); return ok }

// Call runs fn on the thread of the device and waits for it, or until ctx ends; fn then runs nevertheless. While fn blocks, the device gets no new work;
// some seconds after the caller gave up, whoever waits for the device gets an error, and Close returns.
// fn must not use the device's other methods, which would wait for its thread.
func Call(ctx context.Context, d npu.Device, fn func(Raw) error) error {
	dev, ok := d.(*Device)
	if !ok {
		return fmt.Errorf("acl: %T is not an NPU of this package", d)
	}
	return dev.thread.do(ctx, func() error { return fn(dev.raw()) })
}

// CallLast is Call for what must be done even if the device is lost, such as destroying a communicator.
func CallLast(ctx context.Context, d npu.Device, fn func(Raw) error) error {
	dev, ok := d.(*Device)
	if !ok {
		return fmt.Errorf("acl: %T is not an NPU of this package", d)
	}
	return dev.thread.hand(ctx, func() error { return fn(dev.raw()) }, true)
}

func (d *Device) raw() Raw {
	return Raw{Lib: d.lib, Index: d.index, Context: d.context, Deterministic: d.opts.deterministic}
}

// Enqueue runs fn on the thread of the device when all that was enqueued on the stream before has been given to CANN. fn adds work to CANN's stream and
// returns; what is enqueued on the stream later comes behind that work. An error of fn becomes the stream's. Use the stream's Wait and Record to order the
// work with events, and its Sync to wait for it.
func Enqueue(s npu.Stream, fn func(raw Raw, stream cann.Stream) error) error {
	st, ok := s.(*stream)
	if !ok {
		return fmt.Errorf("acl: %T is not a stream of an NPU of this package", s)
	}
	return st.post(command{kind: rawCall, raw: func(c cann.Stream) error { return fn(st.dev.raw(), c) }})
}

// Hold tells that a library has something on the device that cannot be given back, such as a communicator whose peers are gone. Close then does not reset
// the device, which would take it away under the library; it ends with the process. Each call with on = true is undone by one with false.
func Hold(d npu.Device, on bool) error {
	dev, ok := d.(*Device)
	if !ok {
		return fmt.Errorf("acl: %T is not an NPU of this package", d)
	}
	return dev.thread.clean(func() error {
		if on {
			dev.held++
		} else {
			dev.held--
		}
		return nil
	})
}

// Address is that of n bytes at p, for CANN.
func Address(d npu.Device, p npu.Ptr, n int64) (cann.Addr, error) {
	dev, ok := d.(*Device)
	if !ok {
		return 0, fmt.Errorf("acl: %T is not an NPU of this package", d)
	}
	a, err := dev.address(p, n)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", dev.name, err)
	}
	return a, nil
}

// Abort drops what CANN has of a stream, after a collective that will never end. The device is lost afterwards: cause is what its calls return.
func Abort(d npu.Device, s npu.Stream, cause error) error {
	dev, ok1 := d.(*Device)
	st, ok2 := s.(*stream)
	if !ok1 || !ok2 {
		return fmt.Errorf("acl: %T and %T are not an NPU of this package and its stream", d, s)
	}
	return dev.thread.clean(func() error {
		dev.thread.die(cause)
		dev.abort.done, st.aborted = true, true
		return dev.lib.AbortStream(st.raw)
	})
}

// abort is what became of a device after Abort.
type abort struct {
	done  bool
	asked bool // whether the other streams are idle
	busy  bool // they are not: one may wait for ever for what was aborted
}

// quiet reports whether memory may be given back. After an abort, and after an error that only looks like the death of the device, its streams may still
// read and write it; where they do not end soon, it is kept to the end of the process. It is for the thread.
func (d *Device) quiet() bool {
	a := &d.abort
	if a.asked || !a.done && d.thread.alive() == nil {
		return !a.busy
	}
	a.asked = true
	const patience = 200 // milliseconds, for each stream
	for _, s := range d.thread.streams {
		if !s.dirty || s.aborted {
			continue
		}
		// Without an abort an error means that CANN's context is dead, and idle.
		if idle, err := d.lib.SyncStream(s.raw, patience); err == nil && !idle || err != nil && a.done {
			a.busy = true
		}
	}
	return !a.busy
}
