package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// LateError reports that a phase took longer than its deadline.
type LateError struct {
	Phase string // "start", "handshake", "mesh", "exchange", "end"
	After time.Duration
	Ranks []int  // the ranks that did not come
	Text  string // what was waited for
	Hint  string
}

func (e *LateError) Error() string {
	return withHint(fmt.Sprintf("meet: %s: after %v: %s", e.Phase, e.After.Round(time.Millisecond), e.Text), e.Hint)
}

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true; the exit code is 124.
func (e *LateError) Unwrap() error { return context.DeadlineExceeded }

// Blames returns the ranks that did not come.
func (e *LateError) Blames() []int { return e.Ranks }

// RefusedError reports that this job cannot start, or that this rank is none of it.
type RefusedError struct {
	Reason string
	Hint   string
}

func (e *RefusedError) Error() string { return withHint("meet: "+e.Reason, e.Hint) }

// ExitCode returns 69.
func (e *RefusedError) ExitCode() int { return launch.ExitUnavailable }

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "\nhint: " + hint
}

// usage is an error of the command line or the environment: exit code 64.
func usage(format string, a ...any) error {
	return launch.WithCode(launch.ExitUsage, fmt.Errorf("meet: "+format, a...))
}

// unreachable says in words why a connection to addr failed, and what to do.
func unreachable(err error) (why, hint string) {
	var dns *net.DNSError
	var no syscall.Errno
	if errors.As(err, &no); no != 0 {
		why = no.Error()
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the name %s does not resolve", dns.Name), "add the name to DNS or /etc/hosts of this host, or give an address"
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s does not resolve: %s", dns.Name, dns.Err), "look at /etc/resolv.conf, or give an address"
	case no == syscall.ECONNREFUSED:
		return why, "nothing listens there: the process may not have started, may have failed, or a firewall rejects the port"
	case no == syscall.EHOSTUNREACH || no == syscall.ENETUNREACH:
		return why, "there is no way to that network: check ip route, or choose another network with interface = \"NAME\""
	case no == syscall.EACCES || no == syscall.EPERM:
		return why, "a firewall of this host forbids the connection"
	case no == syscall.EMFILE || no == syscall.ENFILE:
		return why + " on this host", "allow more open files: ulimit -n"
	case no == syscall.ETIMEDOUT || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return "no answer", "the host may be down, or a firewall drops the packets: open the port, or set port_range to open ones"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || no == syscall.ECONNRESET:
		return "the connection was closed during the handshake", "a proxy or another program may listen there"
	}
	return err.Error(), ""
}

// lasting reports whether a refusal to connect is a statement of a host, which will hardly change within seconds.
func lasting(err error) bool {
	for _, no := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// ended says in words how a control connection ended. Between hosts, one may be reset by what is between them.
func ended(err error, limit time.Duration, far bool) string {
	is := func(list ...error) bool {
		return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case is(syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		return fmt.Sprintf("no answer from its host for %v: the host or the network is down", limit)
	case far && is(syscall.ECONNRESET):
		return "its connection was reset: a firewall or a NAT device on the way cut it, or its process was killed"
	case is(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, io.ErrClosedPipe):
		return "its process ended without giving a reason (killed, crashed, or out of memory)"
	}
	return fmt.Sprintf("its control connection broke: %v", err)
}

// far reports whether a connection leads to another host, as its addresses tell.
func far(conn net.Conn) bool {
	own, ok := conn.LocalAddr().(*net.TCPAddr)
	other, tcp := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp && !own.IP.Equal(other.IP)
}
