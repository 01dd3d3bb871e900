package meet

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// keep makes a connection notice within limit that the other host is gone: probes while it is idle, and a limit to how long data may be unacknowledged, since
// probes rest while there is any. The second also ends a connection to a process that does not read for so long, so it is wanted only between hosts.
func keep(conn *net.TCPConn, limit time.Duration, between bool) error {
	pause := max(time.Second, limit/4)
	if err := conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: pause, Interval: pause, Count: 3}); err != nil {
		return err
	}
	if !between {
		return conn.SetNoDelay(true)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit/time.Millisecond))
	}); err != nil {
		return err
	}
	if set != nil {
		return set
	}
	return conn.SetNoDelay(true)
}
