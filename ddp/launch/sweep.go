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
			left = append(left, fmt.Sprint(i))
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

// busy names a rank whose work must not be interrupted, or returns "".
func (s *supervisor) busy() string {
	for i, r := range s.ranks {
		if what := r.said.doing(); what != "" && (!r.gone || s.lingering) {
			return fmt.Sprintf("rank %d: %s", i, what)
		}
	}
	return ""
}

// linger waits, after a stop request, for what the ranks started and what outlives them: the program proper, if a rank is a shell that the signal has killed,
// still saves its work. The grace period ends the wait, and so do further requests, as they do while ranks are running.
func (s *supervisor) linger(sigs <-chan os.Signal) {
	if s.byUser == 0 || s.byUser == syscall.SIGQUIT {
		return
	}
	s.lingering = true
	for !s.killed && syscall.Kill(-s.pgid, 0) == nil && groupRuns(s.pgid) {
		select {
		case sig := <-sigs:
			s.signal(sig.(syscall.Signal), time.Now())
		case <-s.deadline:
			s.overdue()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sweep kills whatever is left of the job, including children of ranks, and waits for the remaining output.
func (s *supervisor) sweep() {
	until := time.Now().Add(2 * time.Second)
	for syscall.Kill(-s.pgid, syscall.SIGKILL) == nil && groupRuns(s.pgid) {
		if time.Now().After(until) {
			s.console.say("process group %d still has members after SIGKILL", s.pgid)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.drain()
}

// drain waits for the last output. A process that left the group may hold pipes open; drain does not wait for it long unless it writes.
func (s *supervisor) drain() {
	done := make(chan struct{})
	go func() { s.pumps.Wait(); close(done) }()
	until := time.Now().Add(time.Minute)
	for read := int64(-1); read != s.reads.Load() && time.Now().Before(until); {
		read = s.reads.Load()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
		}
	}
	for _, r := range s.ranks {
		closeAll(r.pipe)
	}
	<-done
}
