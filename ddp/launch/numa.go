package launch

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// ShareNear is Share for ranks whose devices belong to NUMA nodes: a rank gets cores of its device's node, and ranks of one node divide its cores.
// nodes lists the processors of a node. Ranks without a node, or whose node has none of cpus, divide the processors of nodes that no rank has, or
// all processors if there are none left; they are not bound then. node may be nil.
func ShareNear(cpus []int, n int, node func(rank int) (int, bool), nodes func(node int) []int) []Placement {
	if node == nil {
		return Share(cpus, n)
	}
	near := map[int][]int{} // node → its ranks
	var far []int
	left := slices.Clone(cpus)
	local := map[int][]int{}
	for r := range n {
		at, ok := node(r)
		if ok && local[at] == nil {
			local[at] = common(nodes(at), cpus)
		}
		if !ok || len(local[at]) == 0 {
			far = append(far, r)
			continue
		}
		near[at] = append(near[at], r)
	}
	if len(near) == 0 {
		return Share(cpus, n)
	}
	out := make([]Placement, n)
	for at, ranks := range near {
		left = slices.DeleteFunc(left, func(c int) bool { return slices.Contains(local[at], c) })
		for i, p := range Share(local[at], len(ranks)) {
			if p.CPUs == nil { // fewer cores than ranks: at least stay on the node
				p.CPUs = local[at]
			}
			out[ranks[i]] = p
		}
	}
	for i, p := range Share(left, len(far)) {
		if len(left) == 0 {
			p = Placement{Threads: 1}
		}
		out[far[i]] = p
	}
	return out
}

// common returns the elements of a that are in b too.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return !slices.Contains(b, c) })
}

// nodeCPUs lists the processors of a NUMA node, as the system describes them; nil if it does not.
func nodeCPUs(node int) []int {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", node))
	if err != nil {
		return nil
	}
	cpus, err := ParseCPUs(strings.TrimSpace(string(b)))
	if err != nil {
		return nil
	}
	return cpus
}
