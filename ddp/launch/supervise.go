package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultGrace is how long ranks may take to end after a stop request.
const DefaultGrace = 30 * time.Second

// settle is how long to wait for the cause of a secondary failure to become visible.
const settle = 500 * time.Millisecond

// Job describes what to start on this machine. Argv and Ranks are required.
type Job struct {
	Argv  []string // program and its arguments, the same for every rank
	Env   []string // base environment as NAME=value; nil means that of this process
	Ranks int
	JobID string        // common to all ranks; "" generates one
	Grace time.Duration // from a stop request to the kill; 0 means DefaultGrace
	NoPin bool          // do not bind each rank to its own cores
	// Node tells the NUMA node of a rank's device: the rank gets cores of that node. nil: no device is nearer to some cores than to others.
	Node func(rank int) (node int, ok bool)

	Stdout, Stderr io.Writer // nil means those of this process
	Result         bool      // standard output is the result: if it cannot be written, the job has failed, with ExitStorage. Otherwise lines are dropped

	started func(rank, pid int) // for tests
	apart   time.Duration       // least time between two requests that count as two
}

func (j *Job) fill() error {
	if len(j.Argv) == 0 || j.Argv[0] == "" {
		return WithCode(ExitUsage, errors.New("launch: no program to start"))
	}
	if j.Ranks < 1 || j.Ranks > 4096 {
		return WithCode(ExitUsage, fmt.Errorf("launch: cannot start %d ranks\nhint: use a number from 1 to 4096", j.Ranks))
	}
	if j.Env == nil {
		j.Env = os.Environ()
	}
	if j.JobID == "" {
		j.JobID = fmt.Sprintf("gotrain-%d-%x", os.Getpid(), time.Now().UnixNano())
	}
	j.JobID = safeName(j.JobID)
	if j.Grace <= 0 {
		j.Grace = DefaultGrace
	}
	if j.apart == 0 {
		j.apart = oneRequest
	}
	if j.Stdout == nil {
		j.Stdout = os.Stdout
	}
	if j.Stderr == nil {
		j.Stderr = os.Stderr
	}
	return nil
}

// Supervise starts the ranks of a job and returns when all have ended: nil if each exited with 0, *StoppedError if they
// ended on request, *Failure if one failed. Until then it handles TERM, INT, QUIT, USR1, USR2, HUP, TSTP and CONT of this process; it changes PIPE
// permanently (OutliveReaders). Cancelling ctx is like sending TERM.
func Supervise(ctx context.Context, j Job) error {
	if err := j.fill(); err != nil {
		return err
	}
	OutliveReaders()
	s := &supervisor{Job: j, begin: time.Now(), exits: make(chan Outcome, j.Ranks), console: newConsole(j.Stdout, j.Stderr)}
	s.host, _ = os.Hostname()
	if g, err := newGuard(); err != nil {
		s.console.say("no guard process: %v; if this process is killed by SIGKILL, children of the ranks will survive", err)
	} else {
		s.guard = g
		defer g.dismiss()
	}

	// Before the first rank starts, so that no signal is missed.
	sigs := make(chan os.Signal, 16)
	signal.Notify(sigs, wanted()...)
	defer signal.Stop(sigs)

	done := make(chan struct{})
	defer close(done)
	if err := s.start(done); err != nil {
		s.console.close(closedChan)
		return err
	}
	s.watch(ctx, sigs)
	s.linger(sigs)
	s.sweep()
	// The ranks are gone. Wait for the reader to take the last lines, unless a signal arrives.
	hurry := make(chan struct{})
	go func() {
		select {
		case <-sigs:
		case <-done:
		}
		close(hurry)
	}()
	s.console.close(hurry)
	if err := s.console.out.Err(); j.Result && err != nil {
		if failed := s.result(); failed != nil {
			return failed
		}
		return WithCode(ExitStorage, fmt.Errorf("launch: the result of the ranks cannot be written: %w", err))
	}
	return s.result()
}

// closedChan is already closed.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// supervisor is a running job. Only the goroutine of Supervise uses its fields, except those of the ranks.
type supervisor struct {
	Job
	begin   time.Time
	host    string
	console *console
	guard   *guard
	ranks   []*rank
	pgid    int
	pumps   sync.WaitGroup
	reads   atomic.Int64 // by all pumps
	exits   chan Outcome

	ended    []Outcome
	asked    syscall.Signal // the last signal that requested the ranks to end
	byUser   syscall.Signal // the user's request; 0 if a failure was the reason
	requests int            // stop requests of the user
	last     time.Time      // time of the latest request
	pressed  bool           // a second request was sent because the grace period expired
	killed   bool
	// lingering means that all ranks are gone, and something that they started is still running after a stop request.
	lingering bool
	saved     bool             // a rank was busy when the deadline passed
	deadline  <-chan time.Time // when it fires: overdue
	due       time.Time        // when deadline fires
	settled   <-chan time.Time // when it fires, the ranks are asked to end after a secondary failure
}

// rank is one started process.
type rank struct {
	cmd  *exec.Cmd
	tail tail
	said records // failure records
	gone bool
	pipe []*os.File // read ends
}

// reap waits for one rank.
func (s *supervisor) reap(i int, r *rank) Outcome {
	st, err := r.cmd.Process.Wait()
	o := Outcome{Rank: i, PID: r.cmd.Process.Pid, After: time.Since(s.begin)}
	if err != nil {
		o.Code = ExitInternal
		return o
	}
	o.Code = st.ExitCode()
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.Signal = ws.Signal()
		o.Code = 128 + int(o.Signal)
	}
	return o
}

// watch forwards signals and records exits until no rank is left.
func (s *supervisor) watch(ctx context.Context, sigs <-chan os.Signal) {
	cancelled := ctx.Done()
	for len(s.ended) < s.Ranks {
		select {
		case o := <-s.exits:
			s.ranks[o.Rank].gone = true
			o.ByUs = o.Signal != 0 && (s.killed && o.Signal == syscall.SIGKILL || o.Signal == s.asked || o.Signal == s.byUser)
			s.ended = append(s.ended, o)
			s.failed(o)
		case sig := <-sigs:
			s.signal(sig.(syscall.Signal), time.Now())
		case <-s.settled:
			s.settled = nil
			s.ask(syscall.SIGTERM)
		case <-cancelled:
			cancelled = nil
			s.request(syscall.SIGTERM, time.Now())
		case <-s.deadline:
			s.overdue()
		}
	}
}

// result combines the outcomes of all ranks into one error.
func (s *supervisor) result() error {
	for i := range s.ended {
		o := &s.ended[i]
		if o.Record = s.ranks[o.Rank].said.get(); o.Record != nil {
			o.recorded = o.Record.Time.Sub(s.begin)
		}
		if code := s.ranks[o.Rank].said.stopped(); code != 0 && o.ByUs && o.Record == nil { // a shell that our signal ended before its program
			o.Code, o.Signal, o.ByUs = code, 0, false
		}
	}
	f, by, failed := first(s.ended)
	if !failed {
		for _, o := range s.ended {
			if o.Code == ExitStopped || o.Code == ExitNotResumable {
				return &StoppedError{Signal: s.byUser, Code: o.Code}
			}
		}
		return nil
	}
	if s.byUser == syscall.SIGQUIT || f.ByUs && (s.requests >= killRequests || f.Signal == s.byUser) {
		return &StoppedError{Signal: s.byUser, Code: 128 + int(s.byUser)}
	}
	fail := &Failure{Outcome: f, Host: s.host, Tail: s.ranks[f.Rank].tail.last(), By: by}
	if f.ByUs && f.Signal == syscall.SIGKILL {
		fail.Why = fmt.Sprintf("did not stop within %v of %s and was killed", s.Grace, unix.SignalName(s.asked))
	}
	for _, o := range s.ended {
		if o.Rank != f.Rank {
			fail.Rest = append(fail.Rest, o)
		}
	}
	return fail
}
