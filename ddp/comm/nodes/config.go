package nodes

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/meet"
)

// Control is what the transport needs of a rendezvous. *meet.Group is one.
type Control interface {
	// Progress tells the others how many collectives this rank has issued; the number is for package nodes only.
	Progress(calls int64)
	// Work tells the others that this rank is at long work.
	Work(what string) (beat func(), end func())
	// Life is what is known of a rank.
	Life(rank int) meet.Life
	// Report tells that the connection to a rank broke. It returns the first cause of the job's failure, within half a second.
	Report(rank int, reason string) error
	// Abort ends the job on all ranks.
	Abort(reason error)
	// Down is closed when the job has failed; Err then returns the cause, as *meet.Fault.
	Down() <-chan struct{}
	Err() error
}

var _ Control = (*meet.Group)(nil)

// Config is what a communicator is made of. It owns the groups, and closes them; the control stays open.
type Config struct {
	Rank   int
	NodeOf []int // by rank, equal on all ranks

	Inner comm.Communicator // the ranks of this node, in their order
	Outer comm.Communicator // the ranks of Rail, in its order; nil where Rail is
	Flat  comm.Communicator // all ranks, for Send and Recv between nodes; nil: these are refused

	// JobRanks says that errors of Outer name ranks of the job, as those of package tcp do, rather than its own.
	JobRanks bool

	Control Control

	// Piece is how many bytes of a large call are on their way at once; 0 = 4 MiB. Small is up to how many bytes a node sends, to all others together, to
	// save a second trip; 0 = 64 KiB. Both must be equal on all ranks.
	Piece, Small int64
}

const (
	defaultPiece = 4 << 20
	defaultSmall = 64 << 10
	// inside is how much the ranks of a node may read in the round of a small call.
	inside = 256 << 10
)

// Comm is one rank's end of a job on several nodes.
type Comm struct {
	comm.Collectives
	*places
	inner, outer, flat comm.Communicator
	jobRanks           bool
	control            Control
	trunk              *Comm // the group that this one was made from, or nil
	first              bool  // of the branches of its trunk: the control carries its count
	side               side
	piece, small       int64
	wireBefore         int64 // of the groups when this one was made

	ctx    context.Context // ends with Close; of the calls of inner and outer groups
	cancel context.CancelFunc
	base   time.Time

	mu       sync.Mutex
	idle     sync.Cond // driving became false
	queue    []*call   // in order of issue
	driving  bool      // a goroutine executes the first call
	closed   bool
	broken   error // first error
	calls    int64
	stats    comm.Stats
	branches int // made from this one
	down     atomic.Bool

	tallyMu sync.Mutex
	tally   int64 // of the trunk: what the control carries

	wake chan struct{}
	quit chan struct{}
	wg   sync.WaitGroup

	// Used only by the driver.
	slab    slab          // of greetings
	scratch [ring]scratch // of pieces
	flying  []comm.Handle // calls of the groups that are under way
}

var (
	_ comm.Communicator = (*Comm)(nil)
	_ comm.Brancher     = (*Comm)(nil)
	_ comm.Watcher      = (*Comm)(nil)
)

// New makes the communicator. All ranks of the job call it at the same point.
func New(cfg Config) (*Comm, error) {
	p, err := newPlaces(cfg.Rank, cfg.NodeOf)
	if err == nil {
		err = p.fits(&cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("comm: nodes: rank %d: %w", cfg.Rank, err)
	}
	return start(cfg, p, nil)
}

// start makes the communicator over groups that fit.
func start(cfg Config, p *places, trunk *Comm) (*Comm, error) {
	c := assemble(cfg, p, trunk)
	if err := c.slab.open(c); err != nil {
		c.cancel()
		return nil, fmt.Errorf("comm: nodes: rank %d: %w", c.rank, err)
	}
	c.live()
	return c, nil
}

// assemble makes the communicator, without memory and without goroutines.
func assemble(cfg Config, p *places, trunk *Comm) *Comm {
	c := &Comm{places: p, inner: cfg.Inner, outer: cfg.Outer, flat: cfg.Flat, jobRanks: cfg.JobRanks, control: cfg.Control, trunk: trunk,
		piece: cfg.Piece, small: cfg.Small, base: time.Now(), wake: make(chan struct{}, 1), quit: make(chan struct{})}
	if c.piece == 0 {
		c.piece = defaultPiece
	}
	if c.small == 0 {
		c.small = defaultSmall
	}
	c.Issue = c.issue
	c.idle.L = &c.mu
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.wireBefore = c.levels()
	return c
}

// live starts the goroutines.
func (c *Comm) live() {
	c.wg.Add(2)
	go c.worker()
	go c.guard()
}
