package tcp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// sentBytes is what the kernel sent on all connections of a rank, without repetitions: what was acknowledged and what is still to be.
func sentBytes(t *testing.T, c *Comm) (n uint64) {
	t.Helper()
	for _, p := range c.others {
		for _, l := range p.lines {
			for unsent(l.fd) > 0 {
			}
			info, err := unix.GetsockoptTCPInfo(l.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			n += info.Bytes_acked
		}
	}
	return n
}
