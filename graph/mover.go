package graph

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// Mover carries tensors between the host, in the plain layout, and device memory in whatever layout they live there: for initial
// weights, checkpoints and export. It works through staging memory and waits for each transfer; it is not for the hot path.
type Mover struct {
	dev     npu.Device
	s       npu.Stream
	copies  *npu.Copier
	staging npu.Buffer
	work    npu.Buffer
	kernels map[string]npu.Kernel
}

// NewMover makes a mover that enqueues on s.
func NewMover(dev npu.Device, s npu.Stream) *Mover {
	return &Mover{dev: dev, s: s, copies: npu.NewCopier(dev, s), kernels: map[string]npu.Kernel{}}
}

// In copies src (plain, of d's dtype) to dst, which has desc d.
func (m *Mover) In(ctx context.Context, dst npu.Ptr, d npu.Desc, src []byte) error {
	if int64(len(src)) != d.PlainBytes() {
		return fmt.Errorf("graph: %v takes %d bytes, %d given", d, d.PlainBytes(), len(src))
	}
	if d.Layout == npu.Plain {
		return m.copies.In(ctx, dst, src)
	}
	return m.convert(ctx, d.With(npu.Plain), d, func(stage npu.Ptr) error { return m.copies.In(ctx, stage, src) }, nil, dst)
}

// Out copies src, which has desc d, to dst in the plain layout.
func (m *Mover) Out(ctx context.Context, dst []byte, src npu.Ptr, d npu.Desc) error {
	if int64(len(dst)) != d.PlainBytes() {
		return fmt.Errorf("graph: %v takes %d bytes, %d given", d, d.PlainBytes(), len(dst))
	}
	if d.Layout == npu.Plain {
		return m.copies.Out(ctx, dst, src)
	}
	return m.convert(ctx, d, d.With(npu.Plain), nil, func(stage npu.Ptr) error { return m.copies.Out(ctx, dst, stage) }, src)
}

// convert runs one layout conversion between the staging buffer and device memory at p.
func (m *Mover) convert(ctx context.Context, from, to npu.Desc, before, after func(npu.Ptr) error, p npu.Ptr) error {
	op := npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": to.DType.String()}, In: []npu.Desc{from}, Out: []npu.Desc{to}}
	k, ok := m.kernels[op.String()]
	if !ok {
		var err error
		if k, err = m.dev.Compile(op); err != nil {
			return err
		}
		m.kernels[op.String()] = k
	}
	var err error
	if m.staging, err = m.grow(m.staging, from.PlainBytes()); err != nil {
		return err
	}
	if m.work, err = m.grow(m.work, max(k.Workspace(), 64)); err != nil {
		return err
	}
	stage := npu.Ptr{Buf: m.staging}
	args := []npu.Ptr{stage, p}
	if before == nil {
		args = []npu.Ptr{p, stage}
	} else if err := before(stage); err != nil {
		return err
	}
	l, err := k.Bind(args, npu.Ptr{Buf: m.work})
	if err != nil {
		return err
	}
	if err := m.s.Run([]npu.Launch{l}); err != nil {
		return err
	}
	if after != nil {
		if err := after(stage); err != nil {
			return err
		}
	}
	return m.s.Sync(ctx)
}

func (m *Mover) grow(b npu.Buffer, n int64) (npu.Buffer, error) {
	if b != nil && b.Bytes() >= n {
		return b, nil
	}
	if b != nil {
		if err := b.Free(); err != nil {
			return nil, err
		}
	}
	return m.dev.Alloc(n)
}

// Close frees the staging memory and the kernels.
func (m *Mover) Close() error {
	if err := m.copies.Close(); err != nil {
		return err
	}
	for _, k := range m.kernels {
		if err := k.Close(); err != nil {
			return err
		}
	}
	for _, b := range []npu.Buffer{m.staging, m.work} {
		if b != nil {
			if err := b.Free(); err != nil {
				return err
			}
		}
	}
	m.kernels, m.staging, m.work = map[string]npu.Kernel{}, nil, nil
	return nil
}
