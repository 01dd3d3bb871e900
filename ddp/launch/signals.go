package launch

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// oneRequest is the time within which several signals count as one: Ctrl-C reaches a whole process group, and a launcher in it forwards it too.
	oneRequest = time.Second
	// killRequests is the number of requests that kills the ranks. The first asks them to stop after the current step, the second to
	// abandon it.
	killRequests = 3
)

// wanted lists the signals to handle. A signal that was ignored when the process started (nohup) stays ignored.
func wanted() (out []os.Signal) {
	for _, s := range []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGCONT,
	} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}

// failed asks the other ranks to end after a rank failed. If the rank only gave up because a peer was gone, the peer
// first gets a moment to exit by itself and report why.
func (s *supervisor) failed(o Outcome) {
	switch {
	case !o.OK() && s.asked != 0 && s.byUser == 0 && s.deadline != nil && s.grace() < time.Until(s.due): // the last of those that could end has ended
		s.allow(s.grace())
	case o.OK() || s.asked != 0:
	case o.Code == ExitUnavailable && s.settled == nil:
		s.settled = time.After(settle)
	case o.Code != ExitUnavailable:
		s.settled = nil
		s.ask(syscall.SIGTERM)
	}
}

// signal acts on a signal to the supervisor.
func (s *supervisor) signal(sig syscall.Signal, now time.Time) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM:
		s.request(sig, now)
	case syscall.SIGHUP: // the terminal is gone, so no second request can follow
		if s.requests == 0 {
			s.request(sig, now)
		}
	case syscall.SIGQUIT: // a Go program prints its goroutine stacks and exits
		s.byUser = sig
		s.ask(sig)
	case syscall.SIGUSR1:
		// An early warning (Slurm's --signal=USR1@120): ranks stop by themselves, and the scheduler decides when to kill.
		if s.byUser == 0 {
			s.byUser = sig
		}
		s.send(sig)
	case syscall.SIGTSTP:
		s.pause()
	case syscall.SIGCONT:
		s.send(syscall.SIGCONT)
		if s.deadline != nil { // time spent suspended does not count
			s.allow(s.Grace)
		}
	default:
		s.send(sig)
	}
}

// request handles a user's stop request. Each further request is stronger; requests close together count as one.
func (s *supervisor) request(sig syscall.Signal, now time.Time) {
	if s.requests > 0 && now.Sub(s.last) < s.apart {
		return
	}
	s.last = now
	s.byUser = sig
	s.requests++
	switch name := unix.SignalName(sig); {
	case s.requests >= killRequests:
		s.console.say("third stop request (%s): killing the ranks", name)
		s.kill()
		return
	case s.requests == 2:
		s.console.say("second stop request (%s): asking the ranks to abandon the current step; a third request kills them", name)
	case sig == syscall.SIGINT:
		s.console.say("interrupt: the ranks stop after the current step; interrupt again to abandon the step, a third time to kill the ranks")
	}
	s.ask(sig)
}

// ask sends the ranks a stop signal and starts the grace period.
func (s *supervisor) ask(sig syscall.Signal) {
	s.asked = sig
	s.send(sig)
	if !s.killed {
		s.allow(s.grace())
	}
}

// thaw is how long a rank may take to end that others gave up since it gives no sign of life.
const thaw = 5 * time.Second

// grace is how long the ranks may take to end.
func (s *supervisor) grace() time.Duration {
	if s.byUser == 0 && s.frozen() {
		return min(s.Grace, s.thaw)
	}
	return s.Grace
}

// allow sets the deadline to d from now.
func (s *supervisor) allow(d time.Duration) {
	s.deadline, s.due, s.granted = time.After(d), time.Now().Add(d), d
}

// overdue acts when the grace period expires. It waits for a rank that is saving, and then restarts the grace period for all: the saved work is worth
// the wait. Ranks that a user asked to end receive a second request first, which makes trainers abandon a long step.
func (s *supervisor) overdue() {
	if time.Since(s.due) > oneRequest { // this process was suspended itself: SIGCONT is about to arrive
		s.allow(s.Grace)
		return
	}
	if who := s.busy(); who != "" {
		if !s.saved {
			s.console.say("waiting for %s", who)
		}
		s.saved = true
		s.allow(min(s.Grace, time.Second))
		return
	}
	if s.saved {
		s.saved = false
		s.allow(s.Grace)
		return
	}
	if s.requests == 1 && !s.pressed {
		s.pressed = true
		s.console.say("%s still running %v after the stop request: asking them to abandon the current step", s.alive(), s.Grace)
		s.ask(s.asked)
		return
	}
	s.deadline = nil
	s.console.say("%s still running %v after the stop request: killing the group", s.alive(), s.granted)
	s.kill()
}

// ExitOnQuit makes SIGQUIT (Ctrl-\) print all goroutine stacks to stderr and end this process with code 131, as the table of exit codes says; by default
// Go exits with 2. cancel undoes it, for a process that becomes a supervisor.
func ExitOnQuit() (cancel func()) {
	if signal.Ignored(syscall.SIGQUIT) {
		return func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGQUIT)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-c:
		}
		if p := pprof.Lookup("goroutine"); p != nil {
			_ = p.WriteTo(NewStream(os.Stderr), 2)
		}
		os.Exit(128 + int(syscall.SIGQUIT))
	}()
	return sync.OnceFunc(func() {
		signal.Stop(c)
		close(done)
	})
}
