//go:build cgo && linux

package hccl

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

func init() {
	comm.RegisterTransport("hccl", 10, acl.Is, func(ctx context.Context, o comm.Opening) (comm.Communicator, error) {
		c, err := New(ctx, o)
		if err != nil {
			return nil, err // not c: a nil pointer in an interface is not nil
		}
		return c, nil
	})
}

// New makes a group over the devices of package npu/acl. Every rank must call it at the same point; see comm.RegisterTransport for the rules. Most programs
// call comm.ForDevice instead.
func New(ctx context.Context, o comm.Opening) (*Comm, error) {
	if !acl.Is(o.Device) {
		return nil, errors.New("hccl: the device is not an NPU of package acl")
	}
	return newOn(ctx, &opening{Opening: o})
}

func newOn(ctx context.Context, o *opening) (*Comm, error) {
	p := &aclPort{Device: o.Device}
	if err := p.describe(ctx); err != nil { // the device is lost: the others find out when this rank does not come
		return nil, err
	}
	o.port = p
	return o.run(ctx)
}

// aclPort is an NPU as the transport sees it.
type aclPort struct {
	npu.Device
	f facts
}

func (p *aclPort) describe(ctx context.Context) error {
	return acl.Call(ctx, p.Device, func(raw acl.Raw) error {
		soc, err := raw.Lib.SocName()
		if err != nil {
			return err
		}
		p.f = facts{family: lower.FamilyOf(soc).String(), physical: physical(os.Getenv("ASCEND_RT_VISIBLE_DEVICES"), raw.Index), deterministic: raw.Deterministic}
		return nil
	})
}

func (p *aclPort) Facts() facts { return p.f }

func (p *aclPort) OnThread(ctx context.Context, f func() error) error {
	return acl.Call(ctx, p.Device, func(acl.Raw) error { return f() })
}

func (p *aclPort) Last(ctx context.Context, f func() error) error {
	return acl.CallLast(ctx, p.Device, func(acl.Raw) error { return f() })
}

func (p *aclPort) Hold(ctx context.Context, on bool) error {
	return bounded(ctx, func() error { return acl.Hold(p.Device, on) })
}

// bounded waits for f until ctx ends; f then runs nevertheless.
func bounded(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *aclPort) HCCL() (library, error) {
	l := &aclLibrary{}
	err := acl.Call(context.Background(), p.Device, func(raw acl.Raw) error {
		l.lib = raw.Lib
		return raw.Lib.LoadHCCL()
	})
	return l, err
}

func (p *aclPort) Address(m npu.Ptr, n int64) (uintptr, error) {
	a, err := acl.Address(p.Device, m, n)
	return uintptr(a), err
}

func (p *aclPort) Rail(name string) (rail, error) {
	s, err := p.NewStream(name)
	if err != nil {
		return nil, err
	}
	r := &aclRail{Stream: s, dev: p.Device}
	err = acl.Enqueue(s, func(_ acl.Raw, raw cann.Stream) error {
		r.raw = raw
		return nil
	})
	if err == nil {
		err = s.Sync(context.Background())
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}

// aclRail is a stream of an NPU.
type aclRail struct {
	npu.Stream
	dev npu.Device
	raw cann.Stream
}

func (r *aclRail) Raw(f func(stream uintptr) error) error {
	return acl.Enqueue(r.Stream, func(_ acl.Raw, s cann.Stream) error { return f(uintptr(s)) })
}

// Abort makes the device lost: CANN offers no other way to end a collective that hangs. CANN says that the stream is aborted before the collective has let
// go of its memory, so Abort waits for the stream, whose error is known.
func (r *aclRail) Abort(ctx context.Context, cause error) error {
	return bounded(ctx, func() error {
		if err := acl.Abort(r.dev, r.Stream, cause); err != nil {
			return err
		}
		return acl.CallLast(ctx, r.dev, func(raw acl.Raw) error {
			if idle, err := raw.Lib.SyncStream(r.raw, int(dropTime.Milliseconds())); !idle && err == nil {
				return fmt.Errorf("the stream is still busy after %v", dropTime)
			}
			return nil // idle, or ended by the error that is known
		})
	})
}

// aclLibrary is HCCL with numbers for handles.
type aclLibrary struct{ lib *cann.Lib }

func (l *aclLibrary) RootInfo() ([]byte, error) { return l.lib.HcclRootInfo() }

func (l *aclLibrary) Init(ranks int, root []byte, rank int, config []byte) (uintptr, error) {
	c, err := l.lib.HcclInit(ranks, root, rank, config)
	return uintptr(c), err
}

func (l *aclLibrary) Destroy(g uintptr) error    { return l.lib.HcclDestroy(cann.Comm(g)) }
func (l *aclLibrary) AsyncError(g uintptr) error { return l.lib.HcclAsyncError(cann.Comm(g)) }

func (l *aclLibrary) AllReduce(send, recv uintptr, n int64, t, op int32, g, s uintptr) error {
	return l.lib.HcclAllReduce(cann.Addr(send), cann.Addr(recv), n, cann.HcclType(t), cann.HcclOp(op), cann.Comm(g), cann.Stream(s))
}

func (l *aclLibrary) Reduce(send, recv uintptr, n int64, t, op int32, root int, g, s uintptr) error {
	return l.lib.HcclReduce(cann.Addr(send), cann.Addr(recv), n, cann.HcclType(t), cann.HcclOp(op), root, cann.Comm(g), cann.Stream(s))
}

func (l *aclLibrary) ReduceScatter(send, recv uintptr, n int64, t, op int32, g, s uintptr) error {
	return l.lib.HcclReduceScatter(cann.Addr(send), cann.Addr(recv), n, cann.HcclType(t), cann.HcclOp(op), cann.Comm(g), cann.Stream(s))
}

func (l *aclLibrary) AllGather(send, recv uintptr, n int64, t int32, g, s uintptr) error {
	return l.lib.HcclAllGather(cann.Addr(send), cann.Addr(recv), n, cann.HcclType(t), cann.Comm(g), cann.Stream(s))
}

func (l *aclLibrary) Broadcast(buf uintptr, n int64, t int32, root int, g, s uintptr) error {
	return l.lib.HcclBroadcast(cann.Addr(buf), n, cann.HcclType(t), root, cann.Comm(g), cann.Stream(s))
}

func (l *aclLibrary) AllToAll(send, recv uintptr, n int64, t int32, g, s uintptr) error {
	return l.lib.HcclAllToAll(cann.Addr(send), cann.Addr(recv), n, cann.HcclType(t), cann.Comm(g), cann.Stream(s))
}
