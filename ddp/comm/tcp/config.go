package tcp

import (
	"context"
	"net"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/meet"
)

// Control is what the transport needs of a rendezvous. *meet.Group is one.
type Control interface {
	Rank() int // of this process in the job
	Roster() *meet.Roster
	// Connect makes a connection to each of the ranks, all of which call it with the same stream; nil for this rank.
	Connect(ctx context.Context, stream uint32, ranks []int) ([]*net.TCPConn, error)
	// Report tells that the connection to a rank broke. It returns the first cause of the job's failure, within half a second.
	Report(rank int, reason string) error
	// Abort ends the job on all ranks.
	Abort(reason error)
	// Down is closed when the job has failed; Err then returns the cause, as *meet.Fault.
	Down() <-chan struct{}
	Err() error
	// Progress tells the others how many collectives this rank has issued.
	Progress(calls int64)
	// Work tells the others that this rank is at long work.
	Work(what string) (beat func(), end func())
	// Life is what is known of a rank.
	Life(rank int) meet.Life
}

var _ Control = (*meet.Group)(nil)

// Config describes a group.
type Config struct {
	Control Control
	Ranks   []int  // of the job, in the order of the group; nil: all
	Stream  uint32 // number of the group's first connections: it needs Streams numbers, which no other group of these ranks uses at the same time

	Topology link.Topology
	Streams  int        // connections between two ranks; 0 = 1
	Link     *link.Link // nil: measured, which takes some 30 ms

	// Look is how long to look for data before sleeping. 0 = 50 µs, but not at all where the ranks of the job on this machine are more than its
	// processors. Below 0: never.
	Look time.Duration
	// Warn is told what the user should know, such as that a ring's sums differ from those of other topologies; on rank 0 only. nil: a warning in the log.
	Warn func(sentence string)
}
