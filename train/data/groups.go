package data

import (
	"errors"
	"fmt"
)

// Groups lists the samples of each class, for balanced sampling.
type Groups struct {
	n       int
	members [][]int32 // classes without samples are left out
}

// Labelled is a source that knows the labels of its samples without loading them.
type Labelled interface {
	Source
	Label(i int) int
}

// NewGroups divides the samples of a source by their labels.
func NewGroups(src Labelled) (*Groups, error) {
	g := &Groups{n: src.Len()}
	by := map[int]int{}
	for i := range g.n {
		label := src.Label(i)
		at, ok := by[label]
		if !ok {
			at = len(g.members)
			by[label] = at
			g.members = append(g.members, nil)
		}
		g.members[at] = append(g.members[at], int32(i))
	}
	if g.n == 0 {
		return nil, errors.New("data: the source has no samples to balance")
	}
	return g, nil
}

// String describes the groups: "5 classes of 60 to 80 samples".
func (g *Groups) String() string {
	lo, hi := g.n, 0
	for _, m := range g.members {
		lo, hi = min(lo, len(m)), max(hi, len(m))
	}
	return fmt.Sprintf("%d classes of %d to %d samples", len(g.members), lo, hi)
}

// groupOrder is the order of an epoch: rounds over the classes, in a new order each.
type groupOrder struct {
	g       *Groups
	seed    uint64
	epoch   int
	shuffle bool
	within  []*permutation // of each class
}

func (g *Groups) order(seed uint64, epoch int, shuffle bool) *groupOrder {
	o := &groupOrder{g: g, seed: seed, epoch: epoch, shuffle: shuffle, within: make([]*permutation, len(g.members))}
	if shuffle {
		for c, m := range g.members {
			o.within[c] = newPermutation(len(m), mix64(seed+uint64(c)*golden), epoch)
		}
	}
	return o
}

// at returns the sample at a position, and how often it came before in this epoch.
func (o *groupOrder) at(pos int) (sample, again int) {
	classes := len(o.g.members)
	round, k := pos/classes, pos%classes
	if o.shuffle {
		p := makePermutation(classes, mix64(o.seed^golden+uint64(round)), o.epoch)
		k = p.at(k)
	}
	m := o.g.members[k]
	return int(m[o.within[k].at(round%len(m))]), round / len(m)
}
