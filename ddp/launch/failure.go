package launch

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Outcome is how a rank ended.
type Outcome struct {
	Rank   int
	Host   string // where it ran
	PID    int
	Code   int            // exit code; 128+n for signal n
	Signal syscall.Signal // 0 if it exited by itself
	After  time.Duration  // since the start of the job
	ByUs   bool           // a signal of the supervisor ended it
	Record *Record        // its failure record; nil if it sent none
	Lost   string         // why the host cannot be reached any more; "" if the end of the rank was seen

	recorded time.Duration // time of the record since the start of the job
}

// OK reports whether the rank ended normally: done, or stopped on request.
func (o Outcome) OK() bool {
	return o.Code == ExitOK || o.Code == ExitStopped || o.Code == ExitNotResumable
}

func (o Outcome) String() string {
	if o.Lost != "" {
		return "its host was lost"
	}
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

// Failure is the error of a job in which a rank failed. Its exit code is that of the first rank that failed.
type Failure struct {
	Outcome
	Tail []string // last lines of output of the rank, oldest first
	Rest []Outcome
	// Why is set if the supervisor had to kill the rank: what the rank failed to do.
	Why string
	// By is the rank that noticed the failure if the failed rank itself hung and could not report it.
	By *Outcome
	// Apart is a rank of another host if this one and that one were alive and gave each other up: the network between them failed, not a rank.
	Apart *Outcome
}

// ExitCode returns the code of the first failed rank, or if it hung, of the rank that noticed; 124 if the rank was killed for not stopping in time.
func (f *Failure) ExitCode() int {
	if f.By != nil {
		return f.By.Code
	}
	if f.ByUs && f.Record != nil {
		return f.Record.Code
	}
	if f.Why != "" {
		return ExitTimeout
	}
	return f.Code
}

// Error formats the report: last lines of output first, then the other ranks, and at the very end what happened, where it is most visible.
func (f *Failure) Error() string {
	var b strings.Builder
	if lines := f.lastLines(); len(lines) > 0 {
		fmt.Fprintf(&b, "launch: last lines of rank %d:\n", f.Rank)
		for _, l := range lines {
			fmt.Fprintf(&b, "  | %s\n", l)
		}
	}
	f.others(&b)
	if f.Lost != "" && f.By == nil {
		fmt.Fprintf(&b, "launch: host %s was lost first, with rank %d (%.1fs after start): %s", f.Host, f.Rank, f.failedAfter().Seconds(), f.Lost)
		return b.String()
	}
	if f.Apart != nil {
		fmt.Fprintf(&b, "launch: hosts %s and %s lost each other (%.1fs after start): ", f.Host, f.Apart.Host, f.failedAfter().Seconds())
		b.WriteString(strings.TrimSpace(f.Record.Reason))
		if !strings.Contains(f.Record.Reason, "\nhint: ") {
			fmt.Fprintf(&b, "\nhint: ranks %d and %d were both alive, so look at the network between their hosts: links, switches, firewalls; "+
				"or one of them was frozen for seconds", f.Rank, f.Apart.Rank)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "launch: rank %d failed first: ", f.Rank)
	var reason string
	switch {
	case f.By != nil:
		fmt.Fprintf(&b, "it hung, according to rank %d", f.By.Rank)
		reason = f.By.Record.Reason
	case f.Record != nil && f.ByUs:
		fmt.Fprintf(&b, "it failed with exit code %d, but did not exit by itself", f.Record.Code)
		reason = f.Record.Reason
	case f.Record != nil:
		b.WriteString(f.Outcome.String())
		reason = f.Record.Reason
	case f.Why != "":
		b.WriteString(f.Why)
	default:
		b.WriteString(f.Outcome.String())
	}
	fmt.Fprintf(&b, " (host %s, pid %d, %.1fs after start)", f.Host, f.PID, f.failedAfter().Seconds())
	if reason != "" {
		b.WriteString(": " + strings.TrimSpace(reason))
	}
	if h := f.hint(); h != "" {
		b.WriteString("\nhint: " + h)
	}
	return b.String()
}

// others writes how the other ranks ended, one line for all that ended in the same way.
func (f *Failure) others(b *strings.Builder) {
	var says []string
	ranks := map[string][]int{}
	add := func(rank int, text string) {
		if ranks[text] == nil {
			says = append(says, text)
		}
		ranks[text] = append(ranks[text], rank)
	}
	for _, o := range f.Rest {
		then := "then"
		if o.failedAfter() < f.failedAfter() {
			then = "had already"
		}
		switch {
		case o.OK():
		case o.Lost != "":
			add(o.Rank, fmt.Sprintf("%s ended because host %s was lost", then, o.Host))
		case o.ByUs && o.Signal == syscall.SIGKILL:
			add(o.Rank, "was then killed with SIGKILL by the launcher")
		case o.ByUs:
			add(o.Rank, "was then ended with "+unix.SignalName(o.Signal)+" by the launcher")
		default:
			add(o.Rank, fmt.Sprintf("%s ended with %s", then, o))
		}
	}
	for _, text := range says {
		who := fmt.Sprintf("rank %d", ranks[text][0])
		if n := len(ranks[text]); n > 1 {
			who = "ranks " + strings.ReplaceAll(FormatCPUs(slices.Sorted(slices.Values(ranks[text]))), ",", ", ")
			text = strings.Replace(text, "was then", "were then", 1)
		}
		fmt.Fprintf(b, "launch: %s %s\n", who, text)
	}
}

// lastLines is Tail without the error message that ends it, which the report has at its end.
func (f *Failure) lastLines() []string {
	if f.By != nil || f.Record == nil || strings.TrimSpace(f.Record.Reason) == "" {
		return f.Tail
	}
	reason := strings.Split(strings.TrimSpace(f.Record.Reason), "\n")
	at := len(f.Tail) - len(reason)
	for i, want := range reason {
		switch {
		case at < 0:
			return f.Tail
		case i == 0 && strings.HasSuffix(f.Tail[at], want): // behind the program's name
		case f.Tail[at+i] != want:
			return f.Tail
		}
	}
	return f.Tail[:at]
}

func (f *Failure) hint() string {
	if f.By != nil && f.By.Code == ExitUnavailable && !strings.Contains(f.By.Record.Reason, "\nhint: ") {
		return "a process that gives no sign of life is suspended (SIGSTOP, a debugger, a frozen container), or waits for a device or a file system"
	}
	if f.ByUs {
		return ""
	}
	switch f.Signal {
	case syscall.SIGKILL:
		return "an unexpected SIGKILL usually comes from the kernel's out-of-memory killer (see dmesg): use a smaller batch or fewer ranks"
	case syscall.SIGBUS:
		return "SIGBUS usually means that /dev/shm is full: give the container more shared memory (docker run --shm-size=1g)"
	case syscall.SIGILL:
		return "the binary or a library was built for another processor: rebuild it for this one"
	}
	return ""
}

// StoppedError reports that the job ended on request. Its exit code is that of the ranks if all stopped cleanly (75, or 79 if the same command
// starts over), otherwise 128+n.
type StoppedError struct {
	Signal syscall.Signal // the request; 0 if the ranks stopped by themselves
	Code   int
}

// ExitCode returns Code.
func (e *StoppedError) ExitCode() int { return e.Code }

func (e *StoppedError) Error() string {
	by := ""
	if e.Signal != 0 {
		by = " by " + unix.SignalName(e.Signal)
	}
	switch e.Code {
	case ExitStopped:
		return "stopped on request" + by + "\nhint: run the same command again to resume"
	case ExitNotResumable:
		return "stopped on request" + by + "; nothing to resume from\nhint: the same command starts over"
	}
	return "ended" + by + " without a checkpoint"
}
