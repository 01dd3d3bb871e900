package recipes

import (
	"fmt"
	"strconv"
	"strings"
)

// Ports reads port_range: first and last port, zeros for any.
func (c *Comm) Ports() ([2]int, error) {
	if c.PortRange == "" {
		return [2]int{}, nil
	}
	first, last, two := strings.Cut(c.PortRange, "-")
	if !two {
		last = first
	}
	var p [2]int
	for i, s := range []string{first, last} {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 65535 {
			return [2]int{}, fmt.Errorf("%q is not a port", strings.TrimSpace(s))
		}
		p[i] = n
	}
	if p[0] > p[1] {
		return [2]int{}, fmt.Errorf("%d is above %d", p[0], p[1])
	}
	return p, nil
}

// elsewhere are values that other systems have, and what to do instead.
var elsewhere = map[string]map[string]string{
	"comm.transport": {
		"mpi":  `not built in: start with mpirun and leave comm.transport = "auto"`,
		"gloo": `not built in: leave comm.transport = "auto"`,
		"nccl": `not built in: leave comm.transport = "auto"`,
		"hccl": `device memory of NPUs is exchanged by HCCL anyway: leave comm.transport = "auto"`,
	},
}

// leastHeartbeat is in seconds.
const leastHeartbeat = 0.1

func (c *checker) comm() {
	if _, err := c.r.Comm.Ports(); err != nil {
		c.bad("comm.port_range", "for example 29500-29600", "%v", err)
	}
	if h := c.r.Comm.Heartbeat; h > 0 && h < leastHeartbeat {
		c.bad("comm.heartbeat_seconds", fmt.Sprintf("the least is %g; 0 turns heartbeats off, for debuggers", leastHeartbeat),
			"a rank would be given up after %g seconds of silence, which a busy host may need", 8*h)
	}
}
