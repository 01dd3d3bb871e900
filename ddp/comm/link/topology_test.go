package link

import (
	"strings"
	"testing"
)

func TestTopology(t *testing.T) {
	for want, name := range topologies {
		for _, s := range []string{name, strings.ToUpper(name), " " + name + " "} {
			got, err := ParseTopology(s)
			if err != nil || got != Topology(want) || got.String() != name {
				t.Errorf("%q: %v, %v", s, got, err)
			}
		}
	}
	for s, want := range map[string]string{
		"rign":     `(did you mean "ring"?)`,
		"meshes":   `(did you mean "mesh"?)`,
		"fullmesh": "(the nearest is mesh)",
		"NHR":      "(the nearest is mesh)",
		"star":     "(the nearest is tree)",
		"banana":   "hint: auto, mesh, tree or ring",
	} {
		_, err := ParseTopology(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
	if Ring.Ordered() || !Auto.Ordered() || !Mesh.Ordered() || !Tree.Ordered() {
		t.Error("all sums but the ring's are in rank order")
	}
	var back Topology
	if b, _ := Ring.MarshalText(); back.UnmarshalText(b) != nil || back != Ring {
		t.Errorf("text %q reads as %v", b, back)
	}
}
