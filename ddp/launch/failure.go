package launch

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Outcome is how a rank ended.
type Outcome struct {
	Rank   int
	PID    int
	Code   int            // exit code; 128+n for signal n
	Signal syscall.Signal // 0 when it exited by itself
	After  time.Duration  // since the start of the job
	ByUs   bool           // the supervisor's own signal ended it
}

// OK says whether the rank ended as it should: done, or stopped on request.
func (o Outcome) OK() bool { return o.Code == ExitOK || o.Code == ExitStopped }

func (o Outcome) String() string {
	if o.Signal != 0 {
		return "killed by " + unix.SignalName(o.Signal)
	}
	for _, c := range Codes() {
		if c.Code == o.Code && c.Code > ExitTraining {
			return fmt.Sprintf("exit code %d (%s)", o.Code, c.Name)
		}
	}
	return fmt.Sprintf("exit code %d", o.Code)
}

// first picks the failure that caused the others. A rank that the supervisor itself ended comes last, and one that gave up with
// ExitUnavailable, for a peer was gone, comes after one that failed by itself, even when it was noticed earlier. Among equals the earliest.
func first(outs []Outcome) (Outcome, bool) {
	class := func(o Outcome) int {
		switch {
		case o.ByUs:
			return 2
		case o.Code == ExitUnavailable:
			return 1
		}
		return 0
	}
	best, found := Outcome{}, false
	for _, o := range outs {
		if o.OK() {
			continue
		}
		if !found || class(o) < class(best) || class(o) == class(best) && o.After < best.After {
			best, found = o, true
		}
	}
	return best, found
}

// Failure is the error of a job in which a rank failed. Its exit code is that of the first rank that failed.
type Failure struct {
	Outcome
	Host string
	Tail []string // last lines that the rank wrote, oldest first
	Rest []Outcome
	// Why is set when the supervisor had to end the rank: what it waited for in vain.
	Why string
}

// ExitCode is the first failed rank's; 124 when it had to be killed for not stopping in time.
func (f *Failure) ExitCode() int {
	if f.Why != "" {
		return ExitTimeout
	}
	return f.Code
}

// Error is the report: the other ranks first, then the last lines, and what happened at the very end, where the eye is.
func (f *Failure) Error() string {
	var b strings.Builder
	if len(f.Tail) > 0 {
		fmt.Fprintf(&b, "launch: last lines of rank %d:\n", f.Rank)
		for _, l := range f.Tail {
			fmt.Fprintf(&b, "  | %s\n", l)
		}
	}
	for _, o := range f.Rest {
		then := "then"
		if o.After < f.After {
			then = "before"
		}
		if !o.OK() && o.ByUs {
			how := "ended"
			if o.Signal == syscall.SIGKILL {
				how = "killed"
			}
			fmt.Fprintf(&b, "launch: rank %d was then %s with %s by the launcher\n", o.Rank, how, unix.SignalName(o.Signal))
		} else if !o.OK() {
			fmt.Fprintf(&b, "launch: rank %d %s ended with %s\n", o.Rank, then, o)
		}
	}
	fmt.Fprintf(&b, "launch: rank %d failed first: ", f.Rank)
	if f.Why != "" {
		b.WriteString(f.Why)
	} else {
		b.WriteString(f.Outcome.String())
	}
	fmt.Fprintf(&b, " (host %s, pid %d, %.1fs after start)", f.Host, f.PID, f.After.Seconds())
	if h := f.hint(); h != "" {
		b.WriteString("\nhint: " + h)
	}
	return b.String()
}

func (f *Failure) hint() string {
	if f.ByUs {
		return ""
	}
	switch f.Signal {
	case syscall.SIGKILL:
		return "a SIGKILL that nobody sent is mostly the kernel's out-of-memory killer (see dmesg): use a smaller batch or fewer ranks"
	case syscall.SIGBUS:
		return "SIGBUS is mostly a full /dev/shm: give the container more shared memory (docker run --shm-size=1g)"
	case syscall.SIGILL:
		return "the binary or a library was built for another processor"
	}
	return ""
}

// StoppedError says that the job ended on request. Its exit code is 75 when all ranks stopped in good order,
// otherwise 128+n.
type StoppedError struct {
	Signal syscall.Signal // the request; 0 when the ranks stopped by themselves
	Code   int
}

// ExitCode is Code.
func (e *StoppedError) ExitCode() int { return e.Code }

func (e *StoppedError) Error() string {
	by := ""
	if e.Signal != 0 {
		by = " by " + unix.SignalName(e.Signal)
	}
	if e.Code == ExitStopped {
		return "stopped on request" + by + " after a checkpoint\nhint: run the same command again to go on"
	}
	return "ended" + by + " without a checkpoint"
}
