package assemble

import (
	"testing"
	"time"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

func TestLinks(t *testing.T) {
	r, err := recipes.Load("quickstart", "comm.topology=tree", "comm.port_range=29500-29600", "comm.interface=eth1", "comm.streams=4",
		"comm.heartbeat_seconds=2", "comm.start_timeout_seconds=7")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Links(r)
	want := train.Links{Transport: "auto", Topology: "tree", Interface: "eth1", Ports: [2]int{29500, 29600}, Streams: 4, Heartbeat: 2 * time.Second,
		Start: 7 * time.Second}
	if err != nil || l != want {
		t.Errorf("%+v, %v, want %+v", l, err, want)
	}
	r.Comm.Heartbeat = 0
	if l, err := Links(r); err != nil || l.Heartbeat >= 0 {
		t.Errorf("no heartbeats: %+v, %v", l, err)
	}
	r.Comm.PortRange = "9-1"
	if _, err := Links(r); err == nil {
		t.Error("a wrong range")
	}
}
