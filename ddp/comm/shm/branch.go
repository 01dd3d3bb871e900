package shm

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

var _ comm.Brancher = (*Comm)(nil)

// branchName is the length of the name under which a second group meets.
const branchName = 32

// Branch makes a second group of the same ranks. They meet under a random name, which rank 0 sends through this group. Beats of long work are those of
// this group, which must be closed later.
func (c *Comm) Branch(ctx context.Context) (comm.Communicator, error) {
	name := make([]byte, branchName)
	if c.rank == 0 {
		copy(name, "branch-"+rand.Text())
	}
	if err := comm.Wait(ctx)(c.Broadcast(ctx, comm.Host(name, npu.U8), 0)); err != nil {
		return nil, fmt.Errorf("comm: shm: making a second group: %w", err)
	}
	b, err := Join(ctx, Config{Job: string(name), Rank: c.rank, Size: c.size, Dir: c.dir})
	if err != nil {
		return nil, err
	}
	b.trunk, b.life = c, c.life
	return b, nil
}
