package compress

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// deviceHalf is f16 or bf16 by kernels of a device, for transports that are ordered by events. The host reads no gradient, so it measures no error, and
// only the norm of the gradients sees what is not finite.
type deviceHalf struct {
	half
	dev      npu.Device
	in, out  npu.Stream // of encoding and decoding: the next bucket is encoded while this one travels
	work     [2]npu.Buffer
	kernels  []npu.Kernel
	enc, dec [][]npu.Launch
	ready    []npu.Event
	after    []npu.Event
}

// Open makes buffers and kernels.
func (c *deviceHalf) Open(p *bucket.Plan, mem []comm.Mem, to comm.Communicator) (err error) {
	if err := c.half.Open(p, mem, to); err != nil {
		return err
	}
	if c.in, err = c.dev.NewStream("encode"); err != nil {
		return err
	}
	if c.out, err = c.dev.NewStream("decode"); err != nil {
		return err
	}
	for k := range c.bkts {
		if err := c.compile(k); err != nil {
			return fmt.Errorf("compress: %s on %s: bucket of %s: %w", c.Name(), c.dev.Info().Name, p.Title(k), err)
		}
	}
	return c.bind()
}

// compile prepares the kernels of a bucket: the factor, a cast; a cast back, the inverse of the factor.
func (c *deviceHalf) compile(k int) error {
	n := int(c.bkts[k].mem.Elems)
	wide, narrow := npu.D(npu.F32, n), npu.D(c.dtype, n)
	cast := func(from, to npu.Desc) npu.Op {
		return npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": to.DType.String()}, In: []npu.Desc{from}, Out: []npu.Desc{to}}
	}
	times := func(f float64) npu.Op {
		return npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": "affine", "alpha": f, "beta": 0.0}, In: []npu.Desc{wide}, Out: []npu.Desc{wide}}
	}
	for _, op := range []npu.Op{times(c.factor), cast(wide, narrow), cast(narrow, wide), times(1 / c.factor)} {
		kernel, err := c.dev.Compile(op)
		if err != nil {
			return err
		}
		c.kernels = append(c.kernels, kernel)
	}
	for _, list := range []*[]npu.Event{&c.ready, &c.after} {
		ev, err := c.dev.NewEvent()
		if err != nil {
			return err
		}
		*list = append(*list, ev)
	}
	return nil
}

// bind fixes the memory of all kernels. Kernels of a stream share workspace.
func (c *deviceHalf) bind() (err error) {
	for i := range c.work {
		need := int64(64)
		for j, k := range c.kernels {
			if j%4/2 == i {
				need = max(need, k.Workspace())
			}
		}
		if c.work[i], err = c.dev.Alloc(need); err != nil {
			return err
		}
	}
	for k := range c.bkts {
		b := &c.bkts[k]
		x, h := b.mem.Ptr, b.enc.Ptr
		var l [4]npu.Launch
		for j, args := range [][]npu.Ptr{{x, x}, {x, h}, {h, x}, {x, x}} {
			if l[j], err = c.kernels[4*k+j].Bind(args, npu.Ptr{Buf: c.work[j/2]}); err != nil {
				return err
			}
		}
		enc, dec := l[:2], l[2:]
		if c.factor == 1 {
			enc, dec = l[1:2], l[2:3]
		}
		c.enc, c.dec = append(c.enc, enc), append(c.dec, dec)
	}
	return nil
}

// PrepareAfter rounds the gradients behind ev.
func (c *deviceHalf) PrepareAfter(k int, ev npu.Event) (comm.Mem, npu.Event, error) {
	return c.bkts[k].enc, c.ready[k], follow(c.in, ev, c.enc[k], c.ready[k])
}

// FinishAfter restores float32 behind ev.
func (c *deviceHalf) FinishAfter(k int, ev npu.Event) (npu.Event, error) {
	return c.after[k], follow(c.out, ev, c.dec[k], c.after[k])
}

// follow enqueues launches between two events.
func follow(s npu.Stream, before npu.Event, batch []npu.Launch, after npu.Event) error {
	if before != nil {
		if err := s.Wait(before); err != nil {
			return err
		}
	}
	if err := s.Run(batch); err != nil {
		return err
	}
	return s.Record(after)
}

// Close frees buffers, kernels and streams.
func (c *deviceHalf) Close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, s := range []npu.Stream{c.in, c.out} {
		if s != nil {
			err = errors.Join(err, s.Sync(ctx), s.Close())
		}
	}
	for _, k := range c.kernels {
		err = errors.Join(err, k.Close())
	}
	for _, ev := range append(c.ready, c.after...) {
		err = errors.Join(err, ev.Close())
	}
	for _, b := range c.work {
		if b != nil {
			err = errors.Join(err, b.Free())
		}
	}
	c.in, c.out, c.kernels, c.ready, c.after, c.work = nil, nil, nil, nil, nil, [2]npu.Buffer{}
	return errors.Join(err, c.half.Close())
}
