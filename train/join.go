package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
)

// Job is this process's place among the ranks of a job, and its connection to them. A program that is started by hcclrun, mpirun, torchrun or srun
// becomes a rank with
//
//	job, err := train.Join(ctx)
//	defer job.Close()
//	t, err := train.New(train.WithJob(job), …)
//
// and runs alone, unchanged, if no launcher started it.
type Job struct {
	launch.Identity
	launch.Placement
	Comm comm.Communicator // nil if this process is alone
}

// Join determines the identity of this process (see package ddp/launch) and connects it to the other ranks.
func Join(ctx context.Context) (*Job, error) {
	id, err := launch.Self()
	if err != nil {
		return nil, err
	}
	return JoinAs(ctx, id)
}

// JoinAs is like Join, for an identity that is already known.
func JoinAs(ctx context.Context, id launch.Identity) (*Job, error) {
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	c, err := Meet(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Job{Identity: Placed(id, c), Placement: place, Comm: c}, nil
}

// Placed fills in what the launcher did not say of this process's place and what the ranks found out when they met.
func Placed(id launch.Identity, c comm.Communicator) launch.Identity {
	if m, ok := c.(*meeting); ok {
		me := m.roster.Members[id.Rank]
		id.NodeRank, id.Nodes = me.Node, m.roster.Nodes()
		if id.LocalRank < 0 || id.LocalWorld < 0 {
			id.LocalRank, id.LocalWorld = me.LocalRank, len(m.roster.OnNode(me.Node))
		}
	}
	return id
}

// Meet connects the ranks of a job: the part of Join for a program that binds its own processors. It returns nil for a process that is alone.
func Meet(ctx context.Context, id launch.Identity) (comm.Communicator, error) {
	return MeetBy(ctx, id, Links{})
}

// MeetBy is Meet with a choice of links.
func MeetBy(ctx context.Context, id launch.Identity, l Links) (comm.Communicator, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	switch {
	case id.World == 1:
		return nil, nil
	case id.Nodes != 1 && l.Transport == "shm":
		return nil, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("%s: these ranks cannot share memory, which the transport shm needs\n"+
			"hint: set comm.transport to auto, or start all ranks on one machine", id))
	case id.Nodes != 1 || l.Transport == "tcp":
		return meetHosts(ctx, id, l, os.LookupEnv)
	}
	c, err := shm.Join(ctx, shm.Config{Job: id.JobID, Rank: id.Rank, Size: id.World, Timeout: l.Start,
		Late: func(missing []int) { slog.Warn(waiting(id, missing, os.LookupEnv)) }})
	switch {
	case errors.Is(err, context.DeadlineExceeded): // code 124 by itself
		return nil, err
	case err != nil:
		return nil, launch.WithCode(launch.ExitUnavailable, err)
	}
	return c, nil
}

// waiting says which ranks this rank waits for, what announced them, and what to do if they do not exist.
func waiting(id launch.Identity, missing []int, lookup launch.Lookup) string {
	return fmt.Sprintf("rank %d of %d waits for ranks %v to start\n%s", id.Rank, id.World, missing, announced(id, lookup))
}

// announced is the hint for ranks that do not come.
func announced(id launch.Identity, lookup launch.Lookup) string {
	if id.Source == launch.SourceGotrain && id.Nodes > 1 { // by hcclrun, which on each host starts the ranks of that host
		return fmt.Sprintf("hint: the job has %d ranks on %d hosts: look at the output of hcclrun on the other hosts, or start it there", id.World, id.Nodes)
	}
	return fmt.Sprintf("hint: the environment announces %d ranks (%s); to run alone, unset these variables or set GOTRAIN_LAUNCHER=none",
		id.World, id.Said(lookup))
}

// Close leaves the job. Close is idempotent.
func (j *Job) Close() error {
	if j.Comm == nil {
		return nil
	}
	return j.Comm.Close()
}

// WithJob makes the trainer a rank of a job: it sets its peers, its index on this machine, its processors and threads.
func WithJob(j *Job) Option {
	return func(c *Config) {
		c.Comm, c.LocalRank, c.LocalSize, c.Node, c.CPUs = j.Comm, max(0, j.LocalRank), max(1, j.LocalWorld), max(0, j.NodeRank), j.CPUs
		if c.Threads == 0 {
			c.Threads = j.Threads
		}
	}
}
