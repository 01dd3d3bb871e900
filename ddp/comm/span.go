package comm

import (
	"context"
	"fmt"
)

// Span says which ranks of a job on several hosts a group joins.
type Span uint8

const (
	Inside  Span = iota // the ranks of this host
	Between             // the ranks of equal index on all hosts
)

func (s Span) String() string { return [...]string{"inside the host", "between hosts"}[s] }

// Leveled is a Communicator of ranks on several hosts that lets its user work level by level.
type Leveled interface {
	// Nodes returns the host of each rank, numbered from 0.
	Nodes() []int
	// Chain makes one group for each span. Their ranks are in the order of those of the job: in a group inside a host a rank has its index on the host, in
	// one between hosts the number of its host. The groups are for collectives that follow each other: call i of a group waits for call i of the group
	// before it in the chain. So a deadline that passes in any of them can be blamed on ranks that are late in the first.
	//
	// All ranks call it at the same point, in the order of the other collectives, with the same spans. It fails unless all hosts have as many ranks. The
	// groups exchange no messages (Send, Recv), and are closed by the caller, before this communicator.
	Chain(ctx context.Context, spans ...Span) ([]Communicator, error)
}

// Even returns the number of hosts and of ranks on each, if c is Leveled and has several hosts with as many ranks each; otherwise zeros.
func Even(c Communicator) (hosts, each int) {
	l, ok := c.(Leveled)
	if !ok {
		return 0, 0
	}
	var ranks []int // by host
	for _, host := range l.Nodes() {
		for host >= len(ranks) {
			ranks = append(ranks, 0)
		}
		ranks[host]++
	}
	for _, n := range ranks {
		if n != ranks[0] {
			return 0, 0
		}
	}
	if len(ranks) < 2 {
		return 0, 0
	}
	return len(ranks), ranks[0]
}

// Chain makes the groups of a chain of c.
func Chain(ctx context.Context, c Communicator, spans ...Span) ([]Communicator, error) {
	l, ok := c.(Leveled)
	if !ok {
		return nil, fmt.Errorf("comm: transport %s has no levels", c.Transport())
	}
	return l.Chain(ctx, spans...)
}
