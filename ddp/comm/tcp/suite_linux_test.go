package tcp

import (
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/link"
)

// suite is commtest's over loopback.
func suite(topology link.Topology, addr string, streams int) commtest.Transport {
	return commtest.Transport{
		New: func(t *testing.T, n int) []comm.Communicator {
			t.Helper()
			g, err := newLocal(n, addr, func(_ int, cfg *Config) {
				cfg.Topology, cfg.Streams, cfg.Warn = topology, streams, func(string) {}
			})
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
		Ring: topology == link.Ring,
		Kill: func(c comm.Communicator) { c.(*Comm).leave(false) },
	}
}

func TestSuite(t *testing.T) {
	for topology := link.Auto; topology <= link.Ring; topology++ {
		if topology == link.Mesh {
			continue // it is what auto takes
		}
		tr := suite(topology, "127.0.0.1:0", 1)
		if testing.Short() && topology != link.Auto {
			tr.Ranks = []int{3}
		}
		t.Run(fmt.Sprint(topology), func(t *testing.T) {
			t.Parallel()
			commtest.Run(t, tr)
		})
	}
}
