package launch

import (
	"fmt"
	"strings"
	"testing"
)

func TestShareNear(t *testing.T) {
	// See TestShare. Node 0 has four processors, node 1 three, node 2 none that this process may use.
	const base = 60000
	nodes := func(node int) []int {
		return map[int][]int{0: {base, base + 1, base + 2, base + 3}, 1: {base + 4, base + 5, base + 6, base + 100}, 2: {base + 200}}[node]
	}
	for _, c := range []struct {
		nodes string // of each rank; "-" is unknown
		want  string
	}{
		{"0 0 1 1", "[0 1]/2 [2 3]/2 [4 5]/1 [6]/1"},
		{"1 0", "[4 5 6]/3 [0 1 2 3]/4"},
		{"0 -", "[0 1 2 3]/4 [4 5 6]/3"},
		{"0 2 1", "[0 1 2 3]/4 []/1 [4 5 6]/3"},
		{"1 1 1 1", "[4 5 6]/1 [4 5 6]/1 [4 5 6]/1 [4 5 6]/1"},
		{"- -", "[0 1 2 3]/3 [4 5 6]/3"},
		{"2 2", "[0 1 2 3]/3 [4 5 6]/3"},
	} {
		of := strings.Fields(c.nodes)
		node := func(rank int) (int, bool) { return int(of[rank][0] - '0'), of[rank] != "-" }
		var cpus []int
		for i := range 7 {
			cpus = append(cpus, base+i)
		}
		var got []string
		for _, p := range ShareNear(cpus, len(of), node, nodes) {
			rel := []int{}
			for _, x := range p.CPUs {
				rel = append(rel, x-base)
			}
			got = append(got, fmt.Sprintf("%v/%d", rel, p.Threads))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("nodes %s: %s, want %s", c.nodes, s, c.want)
		}
	}
}
