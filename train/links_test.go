package train

import (
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

func TestLinksCheck(t *testing.T) {
	for _, l := range []Links{{}, {Transport: "auto", Topology: "ring"}, {Transport: "tcp", Streams: 4}, {Transport: "shm", Topology: "tree"}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for _, l := range []Links{{Transport: "mpi"}, {Topology: "star"}, {Streams: -1}} {
		if err := l.Check(); launch.ExitCode(err) != launch.ExitUsage {
			t.Errorf("%+v: %v", l, err)
		}
		if _, err := MeetBy(t.Context(), launch.Identity{World: 2}, l); launch.ExitCode(err) != launch.ExitUsage {
			t.Errorf("%+v: met with %v", l, err)
		}
	}
}
