package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Reboot returns the file system as it may be after power is restored. Every seed is one possibility among those that the model allows; seeds 0 and 1
// are the extremes: only what was synced, and everything.
func (f *FS) Reboot(seed uint64) *FS {
	s := &survivor{seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), done: map[*node]*node{}}
	out := New()
	out.root = s.keep(f.root)
	return out
}

type survivor struct {
	seed uint64
	rng  *rand.Rand
	done map[*node]*node // a node may have two names if changes next to a rename were lost
}

func (s *survivor) keep(n *node) *node {
	if d := s.done[n]; d != nil {
		return d
	}
	out := &node{dir: n.dir}
	s.done[n] = out
	if !n.dir {
		out.data = s.contents(n)
		out.durable = out.data
		return out
	}
	names := maps.Clone(n.safe)
	for _, c := range s.choose(n.pending) {
		c.apply(names)
	}
	out.entries = map[string]*node{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted, so that a seed is reproducible
		out.entries[name] = s.keep(names[name])
	}
	out.safe = maps.Clone(out.entries)
	return out
}

// choose decides which changes of a directory survive.
func (s *survivor) choose(pending []change) []change {
	switch s.mode() {
	case 0:
		return nil
	case 1:
		return pending
	case 2:
		return pending[:s.rng.IntN(len(pending)+1)]
	}
	var out []change
	for _, c := range pending {
		if s.rng.IntN(2) == 0 {
			out = append(out, c)
		}
	}
	return out
}

// contents decides the contents of a file that was partly not synced.
func (s *survivor) contents(n *node) []byte {
	from := len(n.durable)
	if len(n.data) <= from {
		return slices.Clone(n.durable)
	}
	cut := from + s.rng.IntN(len(n.data)-from+1)
	switch s.mode() {
	case 0:
		return slices.Clone(n.durable)
	case 1:
		return slices.Clone(n.data)
	case 2:
		return slices.Clone(n.data[:cut])
	}
	out := slices.Clone(n.data) // the length made it to the disk, some blocks did not
	clear(out[cut:])
	return out
}

func (s *survivor) mode() int {
	if s.seed < 2 {
		return int(s.seed)
	}
	return s.rng.IntN(4)
}
