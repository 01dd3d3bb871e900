package link

import (
	"fmt"
	"strings"
)

// Topology is how a user wants large reductions to travel.
type Topology uint8

// The topologies. Auto and Mesh are the same algorithms; Auto may change with the model of costs.
const (
	Auto Topology = iota
	Mesh
	Tree
	Ring
)

var topologies = [...]string{Auto: "auto", Mesh: "mesh", Tree: "tree", Ring: "ring"}

func (t Topology) String() string {
	if int(t) < len(topologies) {
		return topologies[t]
	}
	return fmt.Sprintf("Topology(%d)", t)
}

// others are words for topologies elsewhere, with the nearest of ours.
var others = map[string]Topology{
	"default": Auto, "": Auto, "fullmesh": Mesh, "full-mesh": Mesh, "full_mesh": Mesh, "pairwise": Mesh, "direct": Mesh, "alltoall": Mesh, "star": Tree, "doubletree": Tree,
	"double-tree": Tree, "double_binary_tree": Tree, "chain": Tree, "binary": Tree, "binomial": Tree, "hd": Mesh, "h-d_r": Mesh, "nhr": Mesh, "nb": Mesh, "halving-doubling": Mesh,
	"halving_doubling": Mesh, "butterfly": Mesh, "rabenseifner": Mesh, "torus": Ring,
}

// ParseTopology reads a word of a user, in any case.
func ParseTopology(s string) (Topology, error) {
	word := strings.ToLower(strings.TrimSpace(s))
	for t, name := range topologies {
		if word == name {
			return Topology(t), nil
		}
	}
	hint := nearest(word, topologies[:])
	if t, ok := others[word]; ok {
		hint = fmt.Sprintf(" (the nearest is %s)", t)
	}
	return Auto, fmt.Errorf("unknown topology %q%s\nhint: auto, mesh, tree or ring", s, hint)
}

// MarshalText is String.
func (t Topology) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is ParseTopology.
func (t *Topology) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTopology(string(b))
	return err
}

// Ordered reports whether sums are in the order of ranks for every size, so that results do not depend on the size of a message.
func (t Topology) Ordered() bool { return t != Ring }

// nearest suggests a word that differs by at most two letters; "" if there is none.
func nearest(word string, words []string) string {
	best, at := "", 3
	for _, w := range words {
		if d := distance(word, w); d < at {
			best, at = w, d
		}
	}
	if best == "" || word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance counts the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
