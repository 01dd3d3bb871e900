package acl

import (
	"slices"
	"strings"
)

// recent remembers the latest launches, because an error on the device shows long after the launch.
type recent struct {
	ops [64]string
	n   int
}

// add notes a launch of a kernel.
func (r *recent) add(op string) {
	r.ops[r.n%len(r.ops)] = op
	r.n++
}

// String lists a few of the latest different launches, the latest first.
func (r *recent) String() string {
	const most = 4
	var l []string
	for i := r.n - 1; i >= 0 && i >= r.n-len(r.ops) && len(l) < most; i-- {
		if op := r.ops[i%len(r.ops)]; !slices.Contains(l, op) {
			l = append(l, op)
		}
	}
	return strings.Join(l, "; ")
}
