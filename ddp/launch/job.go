package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// DefaultGrace is how long ranks may take to end after a stop request.
	DefaultGrace = 30 * time.Second
	// settle is how long to wait for the cause of a secondary failure to become visible.
	settle = 500 * time.Millisecond
	// maxWorld bounds the number of ranks of a job.
	maxWorld = 1 << 16
)

// Job describes what to start. Argv is required, and Ranks or Hosts.
type Job struct {
	Argv  []string // program and its arguments, the same for every rank
	Env   []string // base environment as NAME=value; nil means that of this process
	Dir   string   // working directory of the ranks; "" means that of this process
	Ranks int      // on this machine
	JobID string   // common to all ranks; "" generates one
	Grace time.Duration
	NoPin bool // do not bind each rank to its own cores
	// NUMA tells the NUMA node of a rank's device, by local rank: the rank gets cores of that node. nil: no device is nearer to some cores than to others.
	NUMA func(local int) (node int, ok bool)

	// Hosts are the machines to start ranks on, in the order of their ranks. nil: Ranks processes on this machine.
	Hosts []Team
	// Master returns the address of rank 0, where ranks of several machines meet; it is called before each start. nil: none is needed, or it is in Env.
	Master func(ctx context.Context) (addr string, port int, err error)
	Token  string // secret of the job, for its ranks only: GOTRAIN_JOB_TOKEN. It is removed from everything that is printed

	// These place the ranks of this machine in a job of several supervisors, one a machine. The zero values mean that this supervisor has the whole job.
	World, First, NodeRank, Nodes int

	Restarts int // how often the whole group is started again after a failure

	Stdout, Stderr io.Writer // nil means those of this process
	Result         bool      // standard output is the result: if it cannot be written, the job has failed, with ExitStorage. Otherwise lines are dropped
	TagAll         bool      // the lines of rank 0 have a prefix too
	Logs           string    // folder for the output of each rank: rank.N/stdout and rank.N/stderr. "": none

	started func(rank, pid int)       // for tests
	apart   time.Duration             // least time between two requests that count as two
	thaw    time.Duration             // grace of frozen ranks
	backOff func(n int) time.Duration // before start n
	refill  time.Duration             // after a run of this length, all restarts are available again
}

// Team is the part of a job on one machine.
type Team struct {
	Host  Host
	Ranks int
	Env   []string // in addition to that of the job
}

func (j *Job) fill() error {
	if len(j.Argv) == 0 || j.Argv[0] == "" {
		return WithCode(ExitUsage, errors.New("launch: no program to start"))
	}
	if j.Hosts == nil {
		if j.Ranks < 1 || j.Ranks > 4096 {
			return WithCode(ExitUsage, fmt.Errorf("launch: cannot start %d ranks\nhint: use a number from 1 to 4096", j.Ranks))
		}
		j.Hosts = []Team{{Host: &Local{started: j.started}, Ranks: j.Ranks}}
	} else if err := j.count(); err != nil {
		return err
	}
	if j.World == 0 {
		j.World, j.First, j.NodeRank, j.Nodes = j.Ranks, 0, 0, len(j.Hosts)
	}
	if j.First < 0 || j.First+j.Ranks > j.World || j.World > maxWorld || j.NodeRank < 0 || j.NodeRank+len(j.Hosts) > j.Nodes {
		return WithCode(ExitUsage, fmt.Errorf("launch: %d ranks from rank %d on do not fit into a job of %d ranks (node %d of %d)",
			j.Ranks, j.First, j.World, j.NodeRank, j.Nodes))
	}
	if j.Env == nil {
		j.Env = os.Environ()
	}
	if j.Token == "" { // the user's own, which is printed nowhere either
		j.Token, _ = LookupIn(j.Env)(TokenVar)
	}
	if j.JobID == "" {
		j.JobID = fmt.Sprintf("gotrain-%d-%x", os.Getpid(), time.Now().UnixNano())
	}
	j.JobID = safeName(j.JobID)
	j.defaults()
	return nil
}

func (j *Job) defaults() {
	if j.Grace <= 0 {
		j.Grace = DefaultGrace
	}
	if j.thaw == 0 {
		j.thaw = thaw
	}
	if j.apart == 0 {
		j.apart = oneRequest
	}
	if j.backOff == nil {
		j.backOff = backOff
	}
	if j.refill == 0 {
		j.refill = time.Hour
	}
	if j.Stdout == nil {
		j.Stdout = os.Stdout
	}
	if j.Stderr == nil {
		j.Stderr = os.Stderr
	}
}

// count sets Ranks to the sum over the hosts.
func (j *Job) count() error {
	j.Ranks = 0
	for _, h := range j.Hosts {
		if h.Ranks < 1 || h.Ranks > 4096 {
			return WithCode(ExitUsage, fmt.Errorf("launch: cannot start %d ranks on %s\nhint: use a number from 1 to 4096", h.Ranks, h.Host.Name()))
		}
		j.Ranks += h.Ranks
	}
	if j.Ranks == 0 {
		return WithCode(ExitUsage, errors.New("launch: no host to start ranks on"))
	}
	return nil
}

// part returns what host h starts; rank is the first of its ranks.
func (j *Job) part(h, rank int) Part {
	s := j.Hosts[h]
	p := Part{
		Argv: j.Argv, Env: append(j.Env[:len(j.Env):len(j.Env)], s.Env...), Dir: j.Dir, Token: j.Token, NoPin: j.NoPin, NUMA: j.NUMA,
		First: Identity{Rank: rank, World: j.World, LocalWorld: s.Ranks, NodeRank: j.NodeRank + h, Nodes: j.Nodes, JobID: j.JobID},
	}
	if rank == 0 && !j.TagAll {
		p.Columns = j.columns()
	}
	return p
}

// columns returns the width of the terminal on stdout, or 0.
func (j *Job) columns() int {
	if f, ok := j.Stdout.(*os.File); ok {
		w, _ := Terminal(f, func(string) (string, bool) { return "", false })
		return w
	}
	return 0
}

// Part is what one host starts of a job: ranks with consecutive numbers.
type Part struct {
	Argv    []string
	Env     []string // base environment
	Dir     string   // working directory; "" means that of the process that starts them
	First   Identity // of the first rank; LocalWorld is the number of ranks to start
	Token   string   // GOTRAIN_JOB_TOKEN
	Columns int      // width of the terminal that shows rank 0; 0: none does
	NoPin   bool
	NUMA    func(local int) (node int, ok bool) `json:"-"`
}

// Host is a machine on which a supervisor starts ranks. *Local is this machine; package remote reaches others through an agent.
type Host interface {
	Name() string // for messages
	// Start starts the ranks of p, or none. Until Finish returns, e hears of what happens to them.
	Start(ctx context.Context, p Part, e Events) error
	Signal(sig syscall.Signal) // to everything of the job that runs there
	Kill()                     // the same with SIGKILL
	Running() bool             // something of the job is left, which need not be a rank
	Alive(pid int) bool        // false if a process of the job is known to have ended
	Finish()                   // kills what is left, and returns when the last output has arrived
}

// Events hears what happens to the ranks of a host. Its methods are called from several goroutines; those for one rank and stream in order. Ages are by the
// clock of the host, because clocks differ.
type Events interface {
	Output(rank int, stderr bool, lines []byte)   // whole lines
	Progress(rank int, text []byte)               // what a terminal shows of an incomplete line
	Record(rank int, r Record, age time.Duration) // a rank reported a failure, or work that must not be interrupted
	Exit(o Outcome, age time.Duration)            // a rank ended; After is not set
	Lost(reason error)                            // the host cannot be reached any more: all its ranks count as ended
	Say(text string)                              // a remark of the host itself
}
