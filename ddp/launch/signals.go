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
	// oneRequest is the time within which several signals are one: Ctrl-C reaches a whole process group, and a launcher in it passes it on.
	oneRequest = time.Second
	// killRequests is how many requests it takes to kill the ranks. The first asks them to stop after the step under way, the second to
	// abandon that step.
	killRequests = 3
)

// wanted are the signals to take over. One that the process was started with ignored (nohup) stays ignored.
func wanted() (out []os.Signal) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGCONT} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}

// failed asks the others to end when a rank did not end well. After one that only gave up because a peer was gone, the
// peer gets a moment to end by itself and say why.
func (s *supervisor) failed(o Outcome) {
	switch {
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
	case syscall.SIGHUP: // the terminal is gone: nobody is there to ask again
		if s.requests == 0 {
			s.request(sig, now)
		}
	case syscall.SIGQUIT: // a Go program shows where its goroutines are, and ends
		s.byUser = sig
		s.ask(sig)
	case syscall.SIGUSR1:
		// An early warning (Slurm's --signal=USR1@120): ranks stop by themselves, and the time until the kill is the scheduler's business.
		if s.byUser == 0 {
			s.byUser = sig
		}
		s.send(sig)
	case syscall.SIGTSTP:
		s.pause()
	case syscall.SIGCONT:
		s.group(syscall.SIGCONT)
		if s.deadline != nil { // the time in which all stood still does not count
			s.allow(s.Grace)
		}
	default:
		s.send(sig)
	}
}

// request is a user's wish to end the job. Repeated, it is a stronger wish; close together, several are one.
func (s *supervisor) request(sig syscall.Signal, now time.Time) {
	if s.requests > 0 && now.Sub(s.last) < s.apart {
		return
	}
	s.last = now
	s.byUser = sig
	s.requests++
	switch name := unix.SignalName(sig); {
	case s.requests >= killRequests:
		s.console.say("third request to end (%s): killing the ranks", name)
		s.kill()
		return
	case s.requests == 2:
		s.console.say("second request to end (%s): asking the ranks to abandon what they do; a third kills them", name)
	case sig == syscall.SIGINT:
		s.console.say("interrupt: the ranks stop after the step under way; interrupt again to abandon the step, a third time to kill them")
	}
	s.ask(sig)
}

// ask tells the ranks to end and starts the clock.
func (s *supervisor) ask(sig syscall.Signal) {
	s.asked = sig
	s.send(sig)
	if !s.killed {
		s.allow(s.Grace)
	}
}

// allow gives the ranks time.
func (s *supervisor) allow(d time.Duration) {
	s.deadline, s.due = time.After(d), time.Now().Add(d)
}

// overdue acts when the grace time is over. A rank that is saving is waited for, and then all get the grace time anew: nothing is worth more than what it
// saves. Ranks that a user asked to end are asked again first, which makes trainers abandon a step that takes long.
func (s *supervisor) overdue() {
	if time.Since(s.due) > oneRequest { // this process stood still itself: the word to go on (SIGCONT) is just coming
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
		s.console.say("%s still running %v after they were asked to end: asking them to abandon what they do", s.alive(), s.Grace)
		s.ask(s.asked)
		return
	}
	s.deadline = nil
	s.console.say("%s still running %v after they were asked to end: killing the group", s.alive(), s.Grace)
	s.kill()
}

// pause stops all ranks and this process, as Ctrl-Z does with a program that has no ranks; SIGCONT is passed on when it comes.
func (s *supervisor) pause() {
	s.group(syscall.SIGSTOP)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// send signals every rank that is left.
func (s *supervisor) send(sig syscall.Signal) {
	for _, r := range s.ranks {
		if !r.gone {
			r.cmd.Process.Signal(sig) // an error means that it is just ending
		}
	}
}

// group signals the ranks and all that they started.
func (s *supervisor) group(sig syscall.Signal) {
	if s.pgid != 0 {
		_ = syscall.Kill(-s.pgid, sig)
	}
}

// kill ends the whole process group, children of ranks included.
func (s *supervisor) kill() {
	s.killed = true
	s.group(syscall.SIGKILL)
}

// ExitOnQuit makes SIGQUIT (Ctrl-\) end this process with code 131, as the table of exit codes says, after it has written to stderr where all goroutines
// are; Go's own way is to exit with 2. cancel ends that, for a process that becomes a supervisor.
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
