package ddp

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Named is a piece of state and its name for messages.
type Named struct {
	Name string
	Mem  comm.Mem
}

// Broadcast copies rank 0's memory to all ranks: initial weights, optimizer state after a load. Every rank passes the same number of
// pieces with the same sizes; an error names the first difference.
func (e *Engine) Broadcast(ctx context.Context, state ...Named) error {
	step, err := e.between("Broadcast")
	if err != nil {
		return err
	}
	for _, s := range state {
		ctx, cancel := e.deadline(ctx)
		err := comm.Wait(ctx)(e.comm.Broadcast(ctx, s.Mem, 0))
		cancel()
		if err != nil {
			err = fmt.Errorf("ddp: rank %d step %d: broadcast of %s: %w", e.comm.Rank(), step, s.Name, err)
			e.fail(err)
			return err
		}
	}
	return nil
}

// CheckState verifies by checksums that state is bit-equal on all ranks. The error (a *comm.ConsensusError inside) names the first
// piece that differs and the ranks. It reads everything once at memory speed, or at the speed of copies where the host cannot access device memory:
// cheap enough for every few hundred steps. The device must be idle.
func (e *Engine) CheckState(ctx context.Context, state ...Named) error {
	step, err := e.between("CheckState")
	if err != nil {
		return err
	}
	items := make([]comm.Item, len(state))
	for i, s := range state {
		sum, err := e.checksum(ctx, s.Mem)
		if err != nil {
			err = fmt.Errorf("ddp: rank %d step %d: reading %s to check it: %w", e.comm.Rank(), step, s.Name, err)
			e.fail(err) // the others wait for this rank
			return err
		}
		items[i] = comm.Item{Name: s.Name, Text: fmt.Sprintf("%v[%d] checksum %016x", s.Mem.DType, s.Mem.Elems, sum)}
	}
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	err = comm.Consensus(ctx, e.ctl, "the state of training", items)
	var differ *comm.ConsensusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &differ): // every rank sees the same
		err = fmt.Errorf(
			"ddp: rank %d step %d: %w\nhint: something outside the engine changed it on one rank; the ranks no longer train one model",
			e.comm.Rank(),
			step,
			err,
		)
		e.end(err)
	default:
		err = fmt.Errorf("ddp: rank %d step %d: %w", e.comm.Rank(), step, err)
		e.fail(err)
	}
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is Checksum of memory anywhere.
func (e *Engine) checksum(ctx context.Context, m comm.Mem) (uint64, error) {
	h := m.Host()
	if h != nil || m.Elems == 0 {
		return Checksum(h), nil
	}
	c, err := e.copier()
	if err != nil {
		return 0, err
	}
	var a, b uint32
	err = c.Each(ctx, m.Ptr, m.Bytes(), func(piece []byte) error {
		a, b = crc32.Update(a, castagnoli, piece), crc32.Update(b, crc32.IEEETable, piece)
		return nil
	})
	return uint64(a)<<32 | uint64(b), err
}

// Checksum returns a fast 64-bit checksum: two CRCs that processors compute in hardware.
func Checksum(b []byte) uint64 {
	return uint64(crc32.Checksum(b, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(b))
}
