package meet

import (
	"context"
	"errors"
	"net"
)

// Group is this rank's connection to the other ranks of the job. Its methods are safe for concurrent use.
type Group struct {
	roster *Roster
	down   chan struct{}
}

var errStub = errors.New("meet: under construction")

// Join meets the other ranks of the job. It returns when all are there.
func Join(ctx context.Context, cfg Config) (*Group, error) { return nil, errStub }

// Rank returns the rank of this process.
func (g *Group) Rank() int { return 0 }

// Roster returns the ranks of the job.
func (g *Group) Roster() *Roster { return g.roster }

// Connect makes authenticated data connections to the given ranks, all of which must call it with the same arguments. It returns them by their index in
// ranks, nil for this rank.
func (g *Group) Connect(ctx context.Context, stream uint32, ranks []int) ([]*net.TCPConn, error) {
	return nil, errStub
}

// Exchange gathers a small message of every rank, in rank order.
func (g *Group) Exchange(ctx context.Context, what string, mine []byte) ([][]byte, error) {
	return nil, errStub
}

// Report tells that the connection to a rank broke. It returns the first cause of the job's failure, within half a second.
func (g *Group) Report(rank int, reason string) error { return errStub }

// Abort ends the job on all ranks.
func (g *Group) Abort(reason error) {}

// Down is closed when the job has failed.
func (g *Group) Down() <-chan struct{} { return g.down }

// Err returns the first cause as *Fault, or nil.
func (g *Group) Err() error { return nil }

// Progress tells the other ranks how many collectives this rank has issued. It only stores the number.
func (g *Group) Progress(calls int64) {}

// Work tells the other ranks that this rank is at long work.
func (g *Group) Work(what string) (beat func(), end func()) { return func() {}, func() {} }

// Life returns what is known of a rank.
func (g *Group) Life(rank int) Life { return Life{} }

// Close leaves the job in order. Idempotent.
func (g *Group) Close() error { return nil }
