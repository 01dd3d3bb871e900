package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/internal/procfs"
)

// listen listens on a port of an address; an invalid address means all of the host, IPv4 and IPv6.
func listen(ctx context.Context, ip netip.Addr, port uint16) (*net.TCPListener, error) {
	host, network := "", "tcp"
	if ip.IsValid() {
		host = ip.String()
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, net.JoinHostPort(host, fmt.Sprint(port)))
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// listenFree listens on a free port of a range, {0, 0} for any. Ranks of a host begin at different ports of it, so that they rarely get in each other's way.
func listenFree(ctx context.Context, ip netip.Addr, ports [2]int, offset int) (*net.TCPListener, error) {
	lo, hi := ports[0], ports[1]
	if lo == 0 && hi == 0 {
		l, err := listen(ctx, ip, 0)
		if err != nil {
			return nil, fmt.Errorf("meet: listening on %s: %w", where(ip), err)
		}
		return l, nil
	}
	if lo < 1 || hi > 65535 || lo > hi {
		return nil, usage("%d-%d is not a range of ports\nhint: write port_range = \"29500-29600\"", lo, hi)
	}
	n := hi - lo + 1
	for i := range n {
		l, err := listen(ctx, ip, uint16(lo+(max(0, offset)+i)%n))
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
			return nil, fmt.Errorf("meet: listening on %s: %w", where(ip), err)
		}
	}
	return nil, &RefusedError{fmt.Sprintf("no port from %d to %d of %s is free", lo, hi, where(ip)),
		"every rank of a host needs one, and rank 0 a second one: make port_range larger"}
}

func where(ip netip.Addr) string {
	if !ip.IsValid() {
		return "host " + hostname()
	}
	return ip.String()
}

// listenHome makes rank 0's listener. A job before this one may just be ending, so a port in use is tried for a moment.
func listenHome(ctx context.Context, h home, ports [2]int, grace time.Duration) (*net.TCPListener, error) {
	if h.port == 0 {
		return listenFree(ctx, h.bind, ports, 0)
	}
	var b backoff
	for begun := time.Now(); ; {
		l, err := listen(ctx, h.bind, h.port)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, syscall.EADDRINUSE) && time.Since(begun) < grace && b.wait(ctx):
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, &RefusedError{fmt.Sprintf("rank 0 cannot listen on port %d of host %s: address in use%s", h.port, hostname(), owner(h.port)),
				"another job may use this port: end it, or choose another port (MASTER_PORT)"}
		default:
			return nil, fmt.Errorf("meet: rank 0 cannot listen on port %d of %s: %w", h.port, where(h.bind), err)
		}
	}
}

// owner names the process that listens on a port, where that can be read.
func owner(port uint16) string {
	pid, name := procfs.Listener(port)
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" by process %d (%s)", pid, name)
}
