package link

import (
	"strings"
	"testing"
	"time"
)

func TestCluster(t *testing.T) {
	l := wires["25G"]
	flat := Cluster{Ranks: 8, Hosts: 8, Link: l}
	if got, want := flat.AllReduce(25<<20), l.AllReduce(Direct, 8, 25<<20); got != want {
		t.Errorf("a rank a host: %v, want the mesh's %v", got, want)
	}
	if got, want := flat.Share(1<<20), l.Share(8, 1<<20); got != want {
		t.Errorf("share: %v, want %v", got, want)
	}
	one := Cluster{Ranks: 8, Hosts: 1}
	if got, want := one.AllReduce(25<<20), Local.AllReduce(Direct, 8, 25<<20); (got - want).Abs() > 2 {
		t.Errorf("one machine: %v, want %v", got, want)
	}
	if got := (Cluster{Ranks: 1, Hosts: 1}).AllReduce(1 << 20); got != 0 {
		t.Errorf("one rank: %v", got)
	}
	two := Cluster{Ranks: 64, Hosts: 8, Link: l}
	n := int64(25 << 20)
	wire := l
	wire.Reduce /= 8
	outside, inside := wire.AllReduce(Direct, 8, n), Local.AllReduce(Direct, 8, n)
	if got := two.AllReduce(n); got <= max(outside, inside) || got >= outside+inside {
		t.Errorf("two levels take %v; the wire alone %v, the hosts alone %v", got, outside, inside)
	}
	if got, sum := two.AllReduce(100<<10), wire.AllReduce(wire.Choose(Auto, 8, 100<<10/8), 8, 100<<10)+Local.AllReduce(Direct, 8, 100<<10); (got - sum).Abs() > 2 {
		t.Errorf("a call of one piece takes %v, want the sum of its levels %v", got, sum)
	}
	for _, c := range []Cluster{flat, two} {
		if got, least := c.AllReduce(n), c.Bound(n); got < least || least != l.Bound(8, n) {
			t.Errorf("%+v: %v against the bound %v", c, got, least)
		}
	}
}

func TestClusterRefuses(t *testing.T) {
	for want, c := range map[string]Cluster{
		"0 ranks":      {Hosts: 1},
		"evenly":       {Ranks: 5, Hosts: 2, Link: wires["1G"]},
		"a bandwidth":  {Ranks: 4, Hosts: 2},
		"a latency of": {Ranks: 4, Hosts: 1, Local: Link{Bandwidth: 1, Latency: -time.Second}},
	} {
		if err := c.Valid(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if err := (Cluster{Ranks: 64, Hosts: 8, Link: wires["25G"]}).Valid(); err != nil {
		t.Error(err)
	}
}

func TestClusterSays(t *testing.T) {
	for want, c := range map[string]Cluster{
		"one rank":               {Ranks: 1, Hosts: 1},
		"4 ranks on one machine": {Ranks: 4, Hosts: 1},
		"mesh from there":        {Ranks: 4, Hosts: 4, Link: wires["25G"]},
		"8 ranks a host reduce in shared memory (64 Gbit/s, 400ns); between 8 hosts exchange below": {Ranks: 64, Hosts: 8, Link: wires["25G"]},
	} {
		if got := c.Says(); !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}
