package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// wanted are the signals to take over. One that the process was started with ignored (nohup) stays ignored.
func wanted() []os.Signal {
	out := []os.Signal{syscall.SIGPIPE}
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP} {
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

// signal acts on a signal of the user.
func (s *supervisor) signal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGPIPE: // comes with the write error that says the same
	case syscall.SIGINT:
		if s.ints++; s.ints > 1 {
			s.byUser = sig
			s.say("second interrupt: killing all ranks")
			s.kill()
			return
		}
		s.say("interrupt: waiting for the ranks to stop; interrupt again to kill them")
		s.request(sig)
	case syscall.SIGTERM, syscall.SIGHUP:
		s.request(sig)
	case syscall.SIGUSR1:
		// An early warning (Slurm's --signal=USR1@120): ranks stop by themselves, and the time until the kill is the scheduler's business.
		s.byUser = sig
		s.send(sig)
	default:
		s.send(sig)
	}
}

// request is a user's wish to end the job.
func (s *supervisor) request(sig syscall.Signal) {
	if s.byUser == 0 {
		s.byUser = sig
	}
	s.ask(sig)
}

// ask tells the ranks to end and starts the clock.
func (s *supervisor) ask(sig syscall.Signal) {
	s.asked = sig
	s.send(sig)
	if s.deadline == nil && !s.killed {
		s.deadline = time.After(s.Grace)
	}
}

// send signals every rank that is left.
func (s *supervisor) send(sig syscall.Signal) {
	for _, r := range s.ranks {
		if !r.gone {
			r.cmd.Process.Signal(sig) // an error means that it is just ending
		}
	}
}

// kill ends the whole process group, children of ranks included.
func (s *supervisor) kill() {
	s.killed = true
	if s.pgid != 0 {
		syscall.Kill(-s.pgid, syscall.SIGKILL)
	}
}
