package npu

import (
	"context"
	"errors"
	"fmt"
)

// copierPiece is how much page-locked memory a Copier has for each of its two pieces: large enough that the start of a copy does not matter.
const copierPiece = 8 << 20

// Copier copies between ordinary host memory and a device, and waits for each copy: for weights, checkpoints and comparisons, not for the hot path. With
// a device of separate memory it goes through two pieces of page-locked memory, which take turns. It is used by one goroutine.
type Copier struct {
	dev    Device
	s      Stream
	direct bool // the device takes any host memory
	piece  int64
	slots  [2]copierSlot
}

type copierSlot struct {
	mem  Buffer
	done Event
}

// NewCopier makes a Copier that enqueues on s. It takes memory when it first needs it.
func NewCopier(d Device, s Stream) *Copier {
	_, locks := d.(HostAllocator)
	return &Copier{dev: d, s: s, direct: !locks || !d.Info().Separate, piece: copierPiece}
}

// In copies src to dst and waits.
func (c *Copier) In(ctx context.Context, dst Ptr, src []byte) error {
	if c.direct {
		if err := c.s.CopyIn(dst, src); err != nil {
			return err
		}
		return c.s.Sync(ctx)
	}
	return c.fill(ctx, dst, int64(len(src)), func(piece []byte, at int64) { copy(piece, src[at:]) })
}

// Zero clears n bytes at dst and waits.
func (c *Copier) Zero(ctx context.Context, dst Ptr, n int64) error {
	if c.direct {
		zeros := make([]byte, min(n, c.piece))
		for at := int64(0); at < n; at += c.piece {
			if err := c.s.CopyIn(dst.At(at), zeros[:min(c.piece, n-at)]); err != nil {
				return err
			}
		}
		return c.s.Sync(ctx)
	}
	return c.fill(ctx, dst, n, func(piece []byte, _ int64) { clear(piece) })
}

// fill sends n bytes in pieces that write fills.
func (c *Copier) fill(ctx context.Context, dst Ptr, n int64, write func(piece []byte, at int64)) error {
	if err := c.open(); err != nil {
		return err
	}
	for i, at := 0, int64(0); at < n; i, at = i+1, at+c.piece {
		slot := &c.slots[i%2]
		if i >= 2 {
			if err := slot.done.Sync(ctx); err != nil {
				return errors.Join(err, c.s.Sync(ctx))
			}
		}
		piece := slot.mem.Host()[:min(c.piece, n-at)]
		write(piece, at)
		if err := c.s.CopyIn(dst.At(at), piece); err != nil {
			return err
		}
		if err := c.s.Record(slot.done); err != nil {
			return err
		}
	}
	return c.s.Sync(ctx)
}

// Out copies src to dst and waits.
func (c *Copier) Out(ctx context.Context, dst []byte, src Ptr) error {
	if c.direct {
		if err := c.s.CopyOut(dst, src); err != nil {
			return err
		}
		return c.s.Sync(ctx)
	}
	return c.Each(ctx, src, int64(len(dst)), func(piece []byte) error {
		dst = dst[copy(dst, piece):]
		return nil
	})
}

// Each calls f with n bytes at src in pieces, in order. A piece is valid during the call. An error of f ends it.
func (c *Copier) Each(ctx context.Context, src Ptr, n int64, f func(piece []byte) error) error {
	if err := c.open(); err != nil {
		return err
	}
	fetch := func(i int64) error {
		at := i * c.piece
		if at >= n {
			return nil
		}
		slot := &c.slots[i%2]
		if err := c.s.CopyOut(slot.mem.Host()[:min(c.piece, n-at)], src.At(at)); err != nil {
			return err
		}
		return c.s.Record(slot.done)
	}
	if err := fetch(0); err != nil {
		return err
	}
	for i := int64(0); i*c.piece < n; i++ {
		if err := fetch(i + 1); err != nil {
			return err
		}
		slot := &c.slots[i%2]
		err := slot.done.Sync(ctx)
		if err == nil {
			err = f(slot.mem.Host()[:min(c.piece, n-i*c.piece)])
		}
		if err != nil {
			return errors.Join(err, c.s.Sync(ctx)) // a copy to the other piece may be under way
		}
	}
	return c.s.Sync(ctx)
}

// open takes the two pieces.
func (c *Copier) open() error {
	for i := range c.slots {
		slot := &c.slots[i]
		var err error
		if slot.mem == nil {
			if slot.mem, err = AllocHost(c.dev, c.piece); err != nil {
				return err
			}
		}
		if slot.done == nil {
			if slot.done, err = c.dev.NewEvent(); err != nil {
				return fmt.Errorf("npu: event of %s: %w", c.dev.Info().Name, err)
			}
		}
	}
	return nil
}

// Close frees the pieces. The stream must be idle. Idempotent.
func (c *Copier) Close() error {
	var errs []error
	for i := range c.slots {
		if m := c.slots[i].mem; m != nil {
			errs = append(errs, m.Free())
		}
		if e := c.slots[i].done; e != nil {
			errs = append(errs, e.Close())
		}
		c.slots[i] = copierSlot{}
	}
	return errors.Join(errs...)
}
