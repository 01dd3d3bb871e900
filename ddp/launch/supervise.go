package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supervise starts the ranks of a job and returns when all have ended: nil if each exited with 0, *StoppedError if they
// ended on request, *Failure if one failed. Until then it handles TERM, INT, QUIT, USR1, USR2, HUP, TSTP and CONT of this process; it changes PIPE
// permanently (OutliveReaders). Cancelling ctx is like sending TERM.
func Supervise(ctx context.Context, j Job) error {
	if err := j.fill(); err != nil {
		return err
	}
	OutliveReaders()
	c := newConsole(j.Stdout, j.Stderr)
	// Before the first rank starts, so that no signal is missed.
	sigs := make(chan os.Signal, 16)
	signal.Notify(sigs, wanted()...)
	defer signal.Stop(sigs)

	begun, err := runs(ctx, j, c, sigs)
	if !begun {
		c.close(closedChan)
		return err
	}
	// The ranks are gone. Wait for the reader to take the last lines, unless a signal arrives.
	hurry, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-sigs:
		case <-done:
		}
		close(hurry)
	}()
	c.close(hurry)
	if unwritten := c.out.Err(); j.Result && unwritten != nil && err == nil {
		return WithCode(ExitStorage, fmt.Errorf("launch: the result of the ranks cannot be written: %w", unwritten))
	}
	return err
}

// closedChan is already closed.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// supervisor is a running job. Only the goroutine of Supervise uses its fields, except those of the ranks.
type supervisor struct {
	Job
	restart int // how many starts came before
	begin   time.Time
	console *console
	ranks   []*rank // by rank - First
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
	granted   time.Duration    // what the deadline was when it was set
	settled   <-chan time.Time // when it fires, the ranks are asked to end after a secondary failure
}

// rank is one started process, on any host.
type rank struct {
	host Host
	out  printer
	said records // failure records
	gone bool
}

// run starts the ranks once and supervises them. begun is false if they could not be started.
func (s *supervisor) run(ctx context.Context, sigs <-chan os.Signal) (begun bool, err error) {
	defer func() {
		for _, r := range s.ranks {
			r.out.close()
		}
	}()
	if err := s.start(ctx, sigs); err != nil {
		return false, err
	}
	s.watch(ctx, sigs)
	s.linger(sigs)
	s.finish()
	return true, s.result()
}

// start starts all ranks or none.
func (s *supervisor) start(ctx context.Context, sigs <-chan os.Signal) error {
	s.exits = make(chan Outcome, 2*s.Ranks)
	parts := make([]Part, len(s.Hosts))
	first := s.First
	for h, share := range s.Hosts {
		parts[h] = s.part(h, first)
		parts[h].First.Restart = s.restart
		for i := range share.Ranks {
			r := &rank{host: share.Host}
			r.out.console, r.out.prefix, r.out.token = s.console, s.prefix(share.Host, first+i), []byte(s.Token)
			s.ranks = append(s.ranks, r)
			if s.Logs != "" {
				if err := r.out.log(s.Logs, first+i); err != nil {
					return WithCode(ExitStorage, fmt.Errorf("launch: output of rank %d: %w", first+i, err))
				}
			}
		}
		first += share.Ranks
	}
	if _, local := s.Hosts[0].Host.(*Local); local && len(s.Hosts) == 1 && s.Master == nil { // at once, so no signal need be served meanwhile
		s.begin = time.Now()
		return s.Hosts[0].Host.Start(ctx, parts[0], events{s, s.First, parts[0]})
	}
	return s.startAll(ctx, sigs, parts)
}

// late is how long a start may still take when a signal asks the job to end.
const late = 3 * time.Second

// startAll starts several hosts at the same time. A signal is kept for the ranks, unless the start takes long: then it cancels the start.
func (s *supervisor) startAll(ctx context.Context, sigs <-chan os.Signal, parts []Part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.startParts(ctx, parts) }()
	var held []syscall.Signal
	var stop syscall.Signal
	var overdue <-chan time.Time
	for {
		select {
		case err := <-done:
			if err != nil && stop != 0 {
				return &StoppedError{Signal: stop, Code: 128 + int(stop)}
			}
			for _, sig := range held {
				if err == nil {
					s.signal(sig, time.Now())
				}
			}
			return err
		case <-overdue:
			cancel()
		case sig := <-sigs:
			held = append(held, sig.(syscall.Signal))
			switch sig {
			case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
				if stop != 0 {
					cancel() // asked twice
				}
				stop, overdue = sig.(syscall.Signal), time.After(late)
			}
		}
	}
}

func (s *supervisor) startParts(ctx context.Context, parts []Part) error {
	if s.Master != nil {
		addr, port, err := s.Master(ctx)
		if err != nil {
			return err
		}
		for i := range parts {
			parts[i].First.MasterAddr, parts[i].First.MasterPort = addr, port
		}
	}
	s.begin = time.Now()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for h := range parts {
		wg.Go(func() { errs[h] = s.Hosts[h].Host.Start(ctx, parts[h], events{s, parts[h].First.Rank, parts[h]}) })
	}
	wg.Wait()
	var failed error
	for h, err := range errs {
		if err != nil && failed == nil {
			failed = err
			if name := s.Hosts[h].Host.Name(); !strings.Contains(err.Error(), name) {
				failed = WithCode(ExitCode(err), fmt.Errorf("launch: host %s: %w", name, err))
			}
		}
	}
	if failed == nil && ctx.Err() == nil {
		return nil
	}
	s.each(func(h int, host Host) {
		if errs[h] == nil {
			host.Kill()
			host.Finish()
		}
	})
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// each calls a function for each host, at the same time.
func (s *supervisor) each(f func(h int, host Host)) {
	if len(s.Hosts) == 1 {
		f(0, s.Hosts[0].Host)
		return
	}
	var wg sync.WaitGroup
	for h, share := range s.Hosts {
		wg.Go(func() { f(h, share.Host) })
	}
	wg.Wait()
}

// prefix is what the lines of a rank begin with.
func (s *supervisor) prefix(h Host, rank int) string {
	switch {
	case rank == 0 && !s.TagAll:
		return ""
	case len(s.Hosts) > 1:
		return fmt.Sprintf("[%s %d] ", h.Name(), rank)
	}
	return fmt.Sprintf("[rank %d] ", rank)
}

// watch forwards signals and records exits until no rank is left.
func (s *supervisor) watch(ctx context.Context, sigs <-chan os.Signal) {
	cancelled := ctx.Done()
	for len(s.ended) < s.Ranks {
		select {
		case o := <-s.exits:
			r := s.ranks[o.Rank-s.First]
			if r.gone {
				continue // reported lost before
			}
			r.gone = true
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

// stoppedWith is the code of ranks that stopped on request, 0 if none did: that of the first of them by rank. Ranks may differ: rank 0 has the checkpoints,
// and a rank on another host may have no access to them.
func stoppedWith(ended []Outcome) int {
	rank, code := -1, ExitOK
	for _, o := range ended {
		if (o.Code == ExitStopped || o.Code == ExitNotResumable) && (rank < 0 || o.Rank < rank) {
			rank, code = o.Rank, o.Code
		}
	}
	return code
}

// result combines the outcomes of all ranks into one error.
func (s *supervisor) result() error {
	for i := range s.ended {
		o := &s.ended[i]
		said := &s.ranks[o.Rank-s.First].said
		o.Record, o.recorded = said.get()
		if code := said.stopped(); code != 0 && o.ByUs && o.Record == nil { // a shell that our signal ended before its program
			o.Code, o.Signal, o.ByUs = code, 0, false
		}
	}
	f, by, failed := first(s.ended)
	if !failed {
		if code := stoppedWith(s.ended); code != ExitOK {
			return &StoppedError{Signal: s.byUser, Code: code}
		}
		return nil
	}
	if s.byUser == syscall.SIGQUIT || f.ByUs && (s.requests >= killRequests || f.Signal == s.byUser) {
		return &StoppedError{Signal: s.byUser, Code: 128 + int(s.byUser)}
	}
	fail := &Failure{Outcome: f, Tail: s.ranks[f.Rank-s.First].out.tail.last(), By: by}
	if by == nil {
		fail.Apart = apart(f, s.ended)
	}
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
