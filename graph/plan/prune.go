package plan

// Prune drops every call none of whose results reaches an output, a gradient or a state, and unnames results that
// nothing reads. Values keep their IDs.
func Prune(g *Graph) {
	need := make([]bool, len(g.Values))
	for _, o := range g.Outputs {
		need[o.Value] = true
	}
	for _, t := range g.Trained {
		if t.Grad != None {
			need[t.Grad] = true
		}
	}
	keep := make([]bool, len(g.Calls))
	for i := len(g.Calls) - 1; i >= 0; i-- {
		c := &g.Calls[i]
		for j, o := range c.Out {
			if o == None {
				continue
			}
			if need[o] || g.Values[o].Role != Temp {
				keep[i] = true
			} else if j > 0 {
				c.Out[j] = None
			}
		}
		if keep[i] {
			for _, in := range c.In {
				need[in] = true
			}
		}
	}
	out := g.Calls[:0]
	for i, c := range g.Calls {
		if keep[i] {
			out = append(out, c)
		}
	}
	g.Calls = out
}
