package plan

import "slices"

// rewriter holds what fusion rules look up: who makes a value, who reads it, and what must survive.
type rewriter struct {
	g       *Graph
	maker   []int   // call that makes a value, -1
	readers [][]int // calls that read it, in order
	pinned  []bool  // an output or a gradient: must exist under its own ID
	dead    []bool  // calls taken out
}

func newRewriter(g *Graph) *rewriter {
	r := &rewriter{g: g, dead: make([]bool, len(g.Calls))}
	r.index()
	return r
}

// index computes the tables anew; called after each change, which is cheap next to what a change saves.
func (r *rewriter) index() {
	n := len(r.g.Values)
	r.maker, r.readers, r.pinned = slices.Repeat([]int{-1}, n), make([][]int, n), make([]bool, n)
	for i, c := range r.g.Calls {
		if r.dead[i] {
			continue
		}
		for _, o := range c.Out {
			if o != None && r.g.Values[o].Role == Temp {
				r.maker[o] = i
			}
		}
		for _, in := range c.In {
			if k := r.readers[in]; len(k) == 0 || k[len(k)-1] != i {
				r.readers[in] = append(k, i)
			}
		}
	}
	for _, o := range r.g.Outputs {
		r.pinned[o.Value] = true
	}
	for _, t := range r.g.Trained {
		if t.Grad != None {
			r.pinned[t.Grad] = true
		}
	}
}

// madeBy returns the live call of one of the kinds that makes v as its first output, and its index; nil where there is none.
func (r *rewriter) madeBy(v ID, kinds ...string) (int, *Call) {
	i := r.maker[v]
	if i < 0 || r.g.Calls[i].Host != nil || r.g.Calls[i].Out[0] != v || !slices.Contains(kinds, r.g.Calls[i].Kind) {
		return -1, nil
	}
	return i, &r.g.Calls[i]
}

// onlyReader says whether call i alone reads v, and reads it once.
func (r *rewriter) onlyReader(v ID, i int) bool {
	return !r.pinned[v] && len(r.readers[v]) == 1 && r.readers[v][0] == i && count(r.g.Calls[i].In, v) == 1
}

// replace makes every live reader of old, but call except, read new.
func (r *rewriter) replace(old, new ID, except int) {
	for _, i := range r.readers[old] {
		if i == except {
			continue
		}
		for j, in := range r.g.Calls[i].In {
			if in == old {
				r.g.Calls[i].In[j] = new
			}
		}
	}
}

// move puts call from where call to was, and takes to out.
func (r *rewriter) move(from, to int) {
	r.g.Calls[to] = r.g.Calls[from]
	r.dead[from] = true
}

// finish drops dead calls.
func (r *rewriter) finish() {
	out := r.g.Calls[:0]
	for i, c := range r.g.Calls {
		if !r.dead[i] {
			out = append(out, c)
		}
	}
	r.g.Calls = out
}
