package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultGrace is how long ranks may take to end after they were asked to.
const DefaultGrace = 30 * time.Second

// settle is how long the cause of a secondary failure may take to show itself.
const settle = 500 * time.Millisecond

// Job says what to start on this machine. Argv and Ranks must be given.
type Job struct {
	Argv  []string // program and its arguments, the same for every rank
	Env   []string // base environment as NAME=value; nil is this process's
	Ranks int
	JobID string        // common name of the ranks; "" makes one up
	Grace time.Duration // from asking ranks to end until killing them; 0 is DefaultGrace
	NoPin bool          // do not bind ranks to cores of their own

	Stdout, Stderr io.Writer // nil is this process's

	started func(rank, pid int) // tells tests
}

func (j *Job) fill() error {
	if len(j.Argv) == 0 || j.Argv[0] == "" {
		return WithCode(ExitUsage, errors.New("launch: no program to start"))
	}
	if j.Ranks < 1 || j.Ranks > 4096 {
		return WithCode(ExitUsage, fmt.Errorf("launch: cannot start %d ranks\nhint: a number from 1 to 4096", j.Ranks))
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
	if j.Stdout == nil {
		j.Stdout = os.Stdout
	}
	if j.Stderr == nil {
		j.Stderr = os.Stderr
	}
	return nil
}

// Supervise starts the ranks of a job and returns when all of them are gone: nil when each exited with 0, *StoppedError when they
// ended on request, *Failure when one failed. It takes over TERM, INT, USR1, USR2, HUP and PIPE of this process meanwhile.
// Cancelling ctx is like sending TERM.
func Supervise(ctx context.Context, j Job) error {
	if err := j.fill(); err != nil {
		return err
	}
	s := &supervisor{Job: j, begin: time.Now(), exits: make(chan Outcome, j.Ranks), outGone: make(chan struct{}, 1)}
	s.host, _ = os.Hostname()
	s.console = &console{out: j.Stdout, err: j.Stderr, gone: func() { s.outGone <- struct{}{} }}

	// Before the first rank starts, so that no signal falls into a gap.
	sigs := make(chan os.Signal, 16)
	signal.Notify(sigs, wanted()...)
	defer signal.Stop(sigs)

	done := make(chan struct{})
	defer close(done)
	if err := s.start(done); err != nil {
		return err
	}
	s.watch(ctx, sigs)
	s.sweep()
	return s.result()
}

// supervisor is a running job. All fields but those of the ranks are used by the goroutine of Supervise only.
type supervisor struct {
	Job
	begin   time.Time
	host    string
	console *console
	ranks   []*rank
	pgid    int
	pumps   sync.WaitGroup
	exits   chan Outcome
	outGone chan struct{} // nobody reads stdout any more

	ended    []Outcome
	asked    syscall.Signal // TERM or the user's signal, once ranks were asked to end
	byUser   syscall.Signal // the user's request, 0 when a failure was the reason
	killed   bool
	ints     int
	deadline <-chan time.Time // then the group is killed
	settled  <-chan time.Time // then ranks are asked to end after a secondary failure
}

// rank is one started process.
type rank struct {
	cmd  *exec.Cmd
	tail tail
	said records // about its failure
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

// watch passes signals on and takes note of ends until no rank is left.
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
			s.signal(sig.(syscall.Signal))
		case <-s.settled:
			s.settled = nil
			s.ask(syscall.SIGTERM)
		case <-cancelled:
			cancelled = nil
			s.request(syscall.SIGTERM)
		case <-s.outGone:
			s.say("nobody reads the output any more: asking the ranks to stop")
			s.request(syscall.SIGTERM)
		case <-s.deadline:
			s.deadline = nil
			s.say("%s still running %v after they were asked to end: killing the group", s.alive(), s.Grace)
			s.kill()
		}
	}
}

// say prints a line of the supervisor's own.
func (s *supervisor) say(format string, a ...any) {
	s.console.lines(s.Stderr, fmt.Appendf(nil, "[launch] "+format+"\n", a...))
}

// alive names the ranks that still run.
func (s *supervisor) alive() string {
	var left []string
	for i, r := range s.ranks {
		if !r.gone {
			left = append(left, fmt.Sprint(i))
		}
	}
	if len(left) == 1 {
		return "rank " + left[0] + " is"
	}
	return "ranks " + strings.Join(left, ", ") + " are"
}

// sweep makes sure that nothing of the job is left, also no child of a rank, and that all output is out.
func (s *supervisor) sweep() {
	until := time.Now().Add(2 * time.Second)
	for syscall.Kill(-s.pgid, syscall.SIGKILL) == nil && groupRuns(s.pgid) {
		if time.Now().After(until) {
			s.say("process group %d still has members after SIGKILL", s.pgid)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.drain()
}

// drain waits for the last output. Pipes may be held open by a process that left the group; it is not waited for long.
func (s *supervisor) drain() {
	done := make(chan struct{})
	go func() { s.pumps.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	for _, r := range s.ranks {
		closeAll(r.pipe)
	}
	<-done
}

// result turns the ends of all ranks into one error.
func (s *supervisor) result() error {
	for i := range s.ended {
		o := &s.ended[i]
		if o.Record = s.ranks[o.Rank].said.get(); o.Record != nil {
			o.recorded = o.Record.Time.Sub(s.begin)
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
	if s.ints > 1 && f.ByUs {
		return &StoppedError{Signal: syscall.SIGINT, Code: 128 + int(syscall.SIGINT)}
	}
	if f.ByUs && f.Signal == s.byUser {
		return &StoppedError{Signal: f.Signal, Code: f.Code}
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
