package shm

import (
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
)

func TestSuite(t *testing.T) {
	commtest.Run(t, commtest.Transport{
		New: func(t *testing.T, n int) []comm.Communicator {
			t.Helper()
			g, err := NewLocal(n)
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
		Kill: func(c comm.Communicator) { c.(*Comm).leave(absent) },
	})
}
