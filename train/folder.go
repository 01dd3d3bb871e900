package train

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// looks is how often, and lookAgain how long apart, ranks look again at a folder that they seem to share: a network file system shows a change late.
const (
	looks     = 3
	lookAgain = time.Second
)

// SameFolder reports whether path is the same folder on all ranks, instead of copies of it. All ranks must call it, with their own path; a rank that has no
// such folder makes it false.
func SameFolder(ctx context.Context, c comm.Communicator, path string) (bool, error) {
	for n := 1; ; n++ {
		mine := identity(path)
		all := make([]int64, len(mine)*c.Size())
		if err := comm.Wait(ctx)(c.AllGather(ctx, comm.HostOf(all), comm.HostOf(mine[:]))); err != nil {
			return false, fmt.Errorf("train: rank %d: comparing %s with that of the other ranks: %w", c.Rank(), path, err)
		}
		inode, whole := all[0] != 0, true
		for r := range c.Size() {
			inode = inode && all[3*r] == all[0]
			whole = whole && [3]int64(all[3*r:]) == [3]int64(all)
		}
		if whole || !inode || n == looks { // the same on all ranks
			return inode && whole, nil
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
