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
// piece that differs and the ranks. It reads everything once at memory speed: cheap enough for every few hundred steps.
func (e *Engine) CheckState(ctx context.Context, state ...Named) error {
	step, err := e.between("CheckState")
	if err != nil {
		return err
	}
	items := make([]comm.Item, len(state))
	for i, s := range state {
		h := s.Mem.Host()
		if h == nil && s.Mem.Elems > 0 {
			return fmt.Errorf("ddp: rank %d: the host cannot access %s to check it", e.comm.Rank(), s.Name)
		}
		items[i] = comm.Item{Name: s.Name, Text: fmt.Sprintf("%v[%d] checksum %016x", s.Mem.DType, s.Mem.Elems, Checksum(h))}
	}
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	err = comm.Consensus(ctx, e.comm, "the state of training", items)
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

// Checksum returns a fast 64-bit checksum: two CRCs that processors compute in hardware.
func Checksum(b []byte) uint64 {
	return uint64(crc32.Checksum(b, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(b))
}
