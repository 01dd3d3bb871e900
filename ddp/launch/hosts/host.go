package hosts

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Host is a machine on which ranks of a job run.
type Host struct {
	Name string // name or address as the user wrote it, without user, port and brackets
	User string // for ssh; "": ssh decides
	Port int    // of ssh; 0: ssh decides
	// Slots is the number of ranks that the host takes. 0: the list does not say; it takes one for each of its devices.
	Slots   int
	Devices []int  // device of each local rank; nil: 0, 1, …
	Ranks   []int  // rank of the job of each local rank, from a rank table; nil: hosts are filled in order
	Addr    string // address for traffic between ranks, from a rank table; "": the one by which the host reaches rank 0
}

// String formats the host as in a list: "user@n1:8", "[fe80::1]:8", or "n1" if the number of slots is not known.
func (h Host) String() string {
	s := h.Name
	if h.Slots > 0 {
		s = net.JoinHostPort(h.Name, strconv.Itoa(h.Slots))
	} else if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if h.User != "" {
		s = h.User + "@" + s
	}
	return s
}

// List is a list of hosts, and where it came from.
type List struct {
	Hosts []Host
	From  string   // for messages: "/etc/mpi/hostfile", "-H", "SLURM_JOB_NODELIST"
	Notes []string // what was read and has no effect here, one sentence each
	// Scheduler is true if a scheduler has given these hosts to the job: then its own starter (srun) is the way to them, rather than ssh.
	Scheduler bool
}

// Slots returns the sum of slots, and false if a host's number is not known.
func (l List) Slots() (n int, known bool) {
	for _, h := range l.Hosts {
		if h.Slots == 0 {
			return 0, false
		}
		n += h.Slots
	}
	return n, true
}

// add appends a host, or adds its slots to an earlier line of the same host.
func (l *List) add(h Host) {
	i := slices.IndexFunc(l.Hosts, func(o Host) bool { return o.Name == h.Name && o.User == h.User && o.Port == h.Port })
	if i < 0 {
		l.Hosts = append(l.Hosts, h)
		return
	}
	// A bare line alone means all devices; repeated, each line is one slot.
	l.Hosts[i].Slots = max(1, l.Hosts[i].Slots) + max(1, h.Slots)
}

// Error is a problem with a list of hosts. Its exit code is 64.
type Error struct {
	From string // the list
	Line int    // from 1; 0 if the list has no lines
	Text string // the line itself, or the part of the list
	Msg  string
	Hint string
}

func (e *Error) Error() string {
	s := "hosts: " + shown(e.From)
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	s += ": " + e.Msg
	if e.Text != "" {
		s += fmt.Sprintf(": %q", e.Text)
	}
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// ExitCode returns 64.
func (e *Error) ExitCode() int { return 64 }

// shown is text as it may go to a terminal.
func shown(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
