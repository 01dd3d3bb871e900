package plan

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/op"
)

// Recompute trades time for memory (Chen et al., arXiv 1604.06174): of each block only the values that other blocks read are kept; what the
// backward pass needs beside them is computed again, by copies of the block's calls, right before the first call of the backward pass that needs any of it.
// The numbers are the same, bit by bit, because the copies are the same ops on the same values.
func Recompute(g *Graph) error {
	r := &recompute{g: g, rewriter: newRewriter(g), before: map[int][]Call{}}
	for i, c := range g.Calls {
		if c.Block != "" && !c.Back && (len(r.names) == 0 || r.names[len(r.names)-1] != c.Block) {
			for _, n := range r.names {
				if n == c.Block {
					return fmt.Errorf("plan: recompute: call %d, %s of %q: the calls of a block must follow one another", i, c.Kind, c.Name)
				}
			}
			r.names = append(r.names, c.Block)
		}
	}
	if len(r.names) == 0 {
		return fmt.Errorf("plan: recompute: the model has no blocks\nhint: build the parts that repeat with Builder.Block, or do without")
	}
	for _, name := range r.names {
		if err := r.block(name); err != nil {
			return err
		}
	}
	var calls []Call
	for i, c := range g.Calls {
		calls = append(append(calls, r.before[i]...), c)
	}
	g.Calls = calls
	return nil
}

type recompute struct {
	g *Graph
	*rewriter
	names  []string
	before map[int][]Call // copies by the call before which they go
}

// block finds what the backward pass reads of a block and makes the copies.
func (r *recompute) block(name string) error {
	inside := func(i int) bool { return i >= 0 && r.g.Calls[i].Block == name && !r.g.Calls[i].Back }
	maker := func(v ID) int {
		if int(v) >= len(r.maker) { // a copy that an earlier block got
			return -1
		}
		return r.maker[v]
	}
	leaves := func(v ID) bool { // it is kept anyway
		if r.pinned[v] {
			return true
		}
		for _, i := range r.readers[v] {
			if !inside(i) && !r.g.Calls[i].Back {
				return true
			}
		}
		return false
	}
	first := -1
	again := map[ID]ID{} // value of the forward pass → its copy
	need := map[int]bool{}
	var want func(v ID) error
	want = func(v ID) error {
		i := maker(v)
		if !inside(i) || leaves(v) || need[i] {
			return nil
		}
		c := r.g.Calls[i]
		if k, err := op.Lookup(c.Kind); c.Host == nil && (err != nil || len(k.States(c.Attrs)) > 0) {
			return fmt.Errorf("plan: recompute: %s of %q updates a state, so it cannot run twice\nhint: recompute = \"none\"", c.Kind, c.Name)
		}
		need[i] = true
		for _, in := range c.In {
			if err := want(in); err != nil {
				return err
			}
		}
		return nil
	}
	for i, c := range r.g.Calls {
		if !c.Back {
			continue
		}
		for _, in := range c.In {
			if !inside(maker(in)) || leaves(in) {
				continue
			}
			if first < 0 {
				first = i
			}
			if err := want(in); err != nil {
				return err
			}
		}
	}
	if first < 0 {
		return nil
	}
	for i := range r.g.Calls {
		if need[i] {
			r.before[first] = append(r.before[first], r.copyOf(i, again, leaves))
		}
	}
	for i := range r.g.Calls {
		if c := &r.g.Calls[i]; c.Back {
			rename(c.In, again)
		}
	}
	return nil
}

// copyOf repeats a call, as part of the backward pass, with its own results; what leaves the block is still in memory and needs no copy.
func (r *recompute) copyOf(i int, again map[ID]ID, leaves func(ID) bool) Call {
	c := r.g.Calls[i]
	c.Back, c.In, c.Out = true, append([]ID{}, c.In...), append([]ID{}, c.Out...)
	rename(c.In, again)
	for j, o := range c.Out {
		if o == None {
			continue
		}
		c.Out[j] = r.g.Add(r.g.Values[o])
		if !leaves(o) {
			again[o] = c.Out[j]
		}
	}
	return c
}

func rename(ids []ID, to map[ID]ID) {
	for i, id := range ids {
		if n, ok := to[id]; ok {
			ids[i] = n
		}
	}
}
