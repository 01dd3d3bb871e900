package assemble

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

// Links are the links of the section [comm].
func Links(r *recipes.Recipe) (train.Links, error) {
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	c := &r.Comm
	l := train.Links{Transport: c.Transport, Topology: c.Topology, Interface: c.Interface, Streams: c.Streams, Heartbeat: seconds(c.Heartbeat)}
	if l.Heartbeat == 0 {
		l.Heartbeat = -1 // no heartbeats
	}
	if r.Chose("comm.start_timeout_seconds") {
		l.Start = seconds(c.StartTimeout)
	}
	var err error
	if l.Ports, err = c.Ports(); err != nil {
		return l, launch.WithCode(launch.ExitRecipe, fmt.Errorf("comm.port_range: %w", err))
	}
	return l, nil
}
