package comm

import (
	"context"
	"fmt"
)

// Brancher is a Communicator that can make a second group of the same ranks, with an order of calls of its own.
type Brancher interface {
	// Branch makes the second group. All ranks must call it at the same point, in the order of the other collectives. Long work that is reported to either
	// of the groups counts in both. The second group must be closed first; closing or breaking it does not touch the first.
	Branch(ctx context.Context) (Communicator, error)
}

// Branch returns a second group of the ranks of c.
func Branch(ctx context.Context, c Communicator) (Communicator, error) {
	b, ok := c.(Brancher)
	if !ok {
		return nil, fmt.Errorf("comm: transport %s cannot make a second group of its ranks", c.Transport())
	}
	return b.Branch(ctx)
}
