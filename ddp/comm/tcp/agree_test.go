package tcp

import (
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/link"
)

// TestAgreed wants the slowest link between machines, and the one least disturbed within a machine, whatever the order of ranks.
func TestAgreed(t *testing.T) {
	quick := settings{Latency: int64(10 * time.Microsecond), PerPeer: int64(time.Microsecond), Bandwidth: 3e9, Reduce: 1e-10}
	slow := settings{Latency: int64(40 * time.Microsecond), PerPeer: int64(4 * time.Microsecond), Bandwidth: 1e8, Reduce: 2e-10}
	best := link.Link{Latency: 10 * time.Microsecond, PerPeer: time.Microsecond, Bandwidth: 3e9, Reduce: 1e-10}
	worst := link.Link{Latency: 40 * time.Microsecond, PerPeer: 4 * time.Microsecond, Bandwidth: 1e8, Reduce: 2e-10}
	for _, table := range [][]settings{{quick, slow}, {slow, quick}, {quick, slow, quick}} {
		if l := agreed(table, true); l != best {
			t.Errorf("on one machine: %+v, want %+v", l, best)
		}
		if l := agreed(table, false); l != worst {
			t.Errorf("between machines: %+v, want %+v", l, worst)
		}
	}
}
