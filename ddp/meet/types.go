package meet

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Config says which rank joins which job, and how.
type Config struct {
	Rank, World           int
	LocalRank, LocalWorld int // as the launcher said; -1 if it said nothing
	Node, Nodes           int // as the launcher said; -1: unknown. Nodes are derived from Machine; a launcher can only split a machine further

	Job        string // the same for all ranks of a job
	Generation int    // how often the job was restarted; a rank of an older generation is refused
	Token      []byte // secret of the job; nil: that of Place
	Place      Place  // where the ranks meet

	Interface string // of data connections: a name, a list of names, or a network (10.0.0.0/8); "": the environment's, else the route to rank 0
	Ports     [2]int // first and last port that may be listened on; zero: any
	Version   string // of this binary; all ranks must have the same
	Device    string // the device of this rank, if no other rank of the machine may have the same; "" for one that can be shared
	Host      string // name of this host for messages; "": the system's
	Machine   string // "": Machine(); tests make several machines of one

	Heartbeat time.Duration // between signs of life; 0: 500 ms; below 0: a rank's silence is never a failure. Rank 0's counts for all
	Timeouts  Timeouts

	// Waiting is told every 10 s what this rank waits for until the job is complete; nil: a warning in the log.
	Waiting func(sentence string)
	// Warn is told of connections that were refused, at most every 10 s; nil: a warning in the log.
	Warn func(sentence string)
	// Lookup reads the environment, for the interface; nil: os.LookupEnv.
	Lookup launch.Lookup

	network string        // "": network(); tests make several networks of one
	grace   time.Duration // 0: grace; tests are less patient
	tell    time.Duration // 0: tell
}

// Timeouts are the deadlines of the phases. A zero is the default, in brackets.
type Timeouts struct {
	Start     time.Duration // all ranks have come [300 s]
	Handshake time.Duration // one connection is proved [2 s]
	Mesh      time.Duration // Connect: connections between all pairs [30 s]
	Exchange  time.Duration // Exchange: the last rank has come [300 s]
	End       time.Duration // Close of rank 0: the other ranks have left [30 s]
}

// Life is what is known of a rank from its heartbeats, at most two beats old.
type Life struct {
	Calls  int64         // collectives issued: its last Progress
	Beats  uint64        // grows with every beat of long work, and when it begins and ends
	Work   string        // long work at which the rank is, or ""
	Silent time.Duration // since its last sign of life, within two beats
	Left   bool          // it has left in order
}

// Fault is the first cause of a job's failure, the same on all ranks.
type Fault struct {
	Rank   int    // the rank that failed
	Host   string // its host
	Reason string
}

func (f *Fault) Error() string {
	if f.Host == "" {
		return fmt.Sprintf("meet: rank %d failed: %s", f.Rank, f.Reason)
	}
	return fmt.Sprintf("meet: rank %d on host %s failed: %s", f.Rank, f.Host, f.Reason)
}

// Blames returns the rank that failed.
func (f *Fault) Blames() []int { return []int{f.Rank} }

// ExitCode returns 69: this process is a victim of another.
func (f *Fault) ExitCode() int { return launch.ExitUnavailable }
