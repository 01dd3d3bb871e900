package train

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Rank 0 alone reads and writes checkpoints, so the other ranks need no access to its files. These functions carry what they need, and what it needs of them.

// toFirst collects bytes of every rank on rank 0, in rank order; on the other ranks it returns nil. All ranks pass the same number of bytes. what is for
// errors.
func (t *Trainer) toFirst(ctx context.Context, what string, mine []byte) ([][]byte, error) {
	all := [][]byte{mine}
	if t.comm.Size() == 1 || len(mine) == 0 {
		return all, nil
	}
	ctx, cancel := t.patient(ctx)
	defer cancel()
	if t.comm.Rank() != 0 {
		return nil, t.collected(what, comm.Wait(ctx)(t.comm.Send(ctx, comm.Host(mine, npu.U8), 0)))
	}
	for r := 1; r < t.comm.Size(); r++ {
		all = append(all, make([]byte, len(mine)))
		if err := comm.Wait(ctx)(t.comm.Recv(ctx, comm.Host(all[r], npu.U8), r)); err != nil {
			return nil, t.collected(fmt.Sprintf("%s of rank %d", what, r), err)
		}
	}
	return all, nil
}

// fromFirst gives each rank its own n bytes, which rank 0 has: of is called there, for one rank after the other, and may return the same memory each time.
func (t *Trainer) fromFirst(ctx context.Context, what string, n int64, of func(rank int) ([]byte, error)) ([]byte, error) {
	ctx, cancel := t.patient(ctx)
	defer cancel()
	if t.comm.Rank() != 0 {
		mine := make([]byte, n)
		if n == 0 {
			return mine, nil
		}
		return mine, t.collected(what, comm.Wait(ctx)(t.comm.Recv(ctx, comm.Host(mine, npu.U8), 0)))
	}
	for r := t.comm.Size() - 1; r >= 0; r-- {
		b, err := of(r)
		if err == nil && int64(len(b)) != n {
			err = fmt.Errorf("%d bytes, want %d", len(b), n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", what, r, err)
		}
		if r == 0 || n == 0 {
			return b, nil
		}
		if err := comm.Wait(ctx)(t.comm.Send(ctx, comm.Host(b, npu.U8), r)); err != nil {
			return nil, t.collected(fmt.Sprintf("%s of rank %d", what, r), err)
		}
	}
	return nil, nil
}

// collected adds the place to an error of a transfer.
func (t *Trainer) collected(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("train: rank %d step %d: %s: %w", t.comm.Rank(), t.step, what, err)
}

// maxShared bounds what rank 0 sends at once, so that a damaged length cannot exhaust the memory of the others.
const maxShared = 1 << 30

// share sends bytes of any length from rank 0 to all ranks.
func (t *Trainer) share(ctx context.Context, b []byte) ([]byte, error) {
	ctx, cancel := t.patient(ctx)
	defer cancel()
	return Share(ctx, t.comm, b)
}

// Share sends bytes of any length, up to 1 GiB, from rank 0 to all ranks of a group. On the other ranks b is ignored.
func Share(ctx context.Context, c comm.Communicator, b []byte) ([]byte, error) {
	if c.Size() == 1 {
		return b, nil
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	if err := comm.Wait(ctx)(c.Broadcast(ctx, comm.Host(head, npu.U8), 0)); err != nil {
		return nil, fmt.Errorf("train: rank %d: %w", c.Rank(), err)
	}
	n := binary.LittleEndian.Uint64(head)
	switch {
	case n > maxShared:
		return nil, fmt.Errorf("train: rank %d: rank 0 wants to send %d bytes, more than %d", c.Rank(), n, maxShared)
	case c.Rank() != 0:
		b = make([]byte, n)
	}
	if n == 0 {
		return b, nil
	}
	if err := comm.Wait(ctx)(c.Broadcast(ctx, comm.Host(b, npu.U8), 0)); err != nil {
		return nil, fmt.Errorf("train: rank %d: %w", c.Rank(), err)
	}
	return b, nil
}
