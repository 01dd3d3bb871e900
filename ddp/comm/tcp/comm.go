package tcp

import (
	"context"
	"errors"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Comm is one rank's end of a group.
type Comm struct{ comm.Communicator }

var errStub = errors.New("tcp: under construction")

// Open makes the group. All its ranks call it at the same point.
func Open(ctx context.Context, cfg Config) (*Comm, error) { return nil, errStub }

// NewLocal makes a group of n ranks in this process, over loopback. Element r is rank r. change, which may be nil, changes the configuration of a rank.
func NewLocal(n int, change func(rank int, cfg *Config)) ([]comm.Communicator, error) {
	return nil, errStub
}
