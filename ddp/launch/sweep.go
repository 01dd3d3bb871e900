package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// alive names the ranks that are still running.
func (s *supervisor) alive() string {
	var left []string
	for i, r := range s.ranks {
		if !r.gone {
			left = append(left, s.called(i))
		}
	}
	if len(left) == 0 {
		return "processes that the ranks started are"
	}
	if len(left) == 1 {
		return "rank " + left[0] + " is"
	}
	return "ranks " + strings.Join(left, ", ") + " are"
}

// called is the number of a rank, with its host if there are several.
func (s *supervisor) called(i int) string {
	if len(s.Hosts) > 1 {
		return fmt.Sprintf("%d (%s)", s.First+i, s.ranks[i].host.Name())
	}
	return fmt.Sprint(s.First + i)
}

// busy names a rank whose work must not be interrupted, or returns "".
func (s *supervisor) busy() string {
	for i, r := range s.ranks {
		if what := r.said.doing(r.host.Alive); what != "" && (!r.gone || s.lingering) {
			return fmt.Sprintf("rank %s: %s", s.called(i), what)
		}
	}
	return ""
}

// running reports whether something of the job is left on any host.
func (s *supervisor) running() bool {
	for _, h := range s.Hosts {
		if h.Host.Running() {
			return true
		}
	}
	return false
}

// linger waits, after a stop request, for what the ranks started and what outlives them: the program proper, if a rank is a shell that the signal has killed,
// still saves its work. The grace period ends the wait, and so do further requests, as they do while ranks are running.
func (s *supervisor) linger(sigs <-chan os.Signal) {
	if s.byUser == 0 || s.byUser == syscall.SIGQUIT {
		return
	}
	s.lingering = true
	for !s.killed && s.running() {
		select {
		case sig := <-sigs:
			s.signal(sig.(syscall.Signal), time.Now())
		case <-s.deadline:
			s.overdue()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// finish kills what is left of the job on all hosts, and waits for the remaining output.
func (s *supervisor) finish() { s.each(func(_ int, h Host) { h.Finish() }) }

// pause suspends all ranks and this process, as Ctrl-Z does with a single process; SIGCONT is forwarded when it arrives.
func (s *supervisor) pause() {
	s.send(syscall.SIGSTOP)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// send signals everything of the job on all hosts.
func (s *supervisor) send(sig syscall.Signal) {
	for _, h := range s.Hosts {
		h.Host.Signal(sig)
	}
}

// kill kills everything of the job, including children of ranks.
func (s *supervisor) kill() {
	s.killed = true
	for _, h := range s.Hosts {
		h.Host.Kill()
	}
}
