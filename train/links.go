package train

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Links says how the ranks of a job exchange data. The zero value lets Meet choose everything.
type Links struct {
	Transport string        // "auto" (or ""): shared memory inside a machine, TCP between machines; "shm"; "tcp": TCP also inside a machine
	Topology  string        // of large reductions between machines: "auto" (or ""), "mesh", "tree", "ring"
	Interface string        // network interface (eth1) or network (10.0.0.0/8) between machines; "": the one by which a machine reaches rank 0
	Ports     [2]int        // range of ports to listen on; zero: any
	Streams   int           // connections between two ranks; 0: one
	Heartbeat time.Duration // between signs of life of ranks on other machines; 0: half a second, below 0: none
	Start     time.Duration // how long ranks wait for each other at the start; 0: five minutes, on one machine two
}

// Check refuses words that Links does not know.
func (l Links) Check() error {
	if l.Transport == "mpi" {
		return launch.WithCode(launch.ExitUsage, errors.New("train: a transport mpi is not built in\nhint: start with mpirun and leave the transport to auto"))
	}
	for _, w := range []struct {
		what, got string
		known     []string
	}{
		{"transport", l.Transport, []string{"auto", "shm", "tcp"}},
		{"topology", l.Topology, []string{"auto", "mesh", "tree", "ring"}},
	} {
		if w.got != "" && !slices.Contains(w.known, w.got) {
			return launch.WithCode(launch.ExitUsage, fmt.Errorf("train: unknown %s %q: one of %v", w.what, w.got, w.known))
		}
	}
	if l.Streams < 0 {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("train: %d streams between two ranks", l.Streams))
	}
	return nil
}
