//go:build !linux

package meet

import (
	"net"
	"time"
)

// keep makes a connection notice that the other host is gone; without Linux's limit on unacknowledged data, heartbeats notice it.
func keep(conn *net.TCPConn, limit time.Duration, _ bool) error {
	pause := max(time.Second, limit/4)
	if err := conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: pause, Interval: pause, Count: 3}); err != nil {
		return err
	}
	return conn.SetNoDelay(true)
}
