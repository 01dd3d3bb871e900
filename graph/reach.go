package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

func children(n *Node) []*Node {
	switch o := n.Op().(type) {
	case nil:
		return nil
	case *call:
		return o.kids
	}
	var kids []*Node
	for it := n.Graph().From(n.ID()); it.Next(); {
		kids = append(kids, it.Node().(*Node))
	}
	return kids
}

// users maps each node to the nodes that read it.
func (b *Builder) users() map[*Node][]*Node {
	m := map[*Node][]*Node{}
	for _, n := range b.g.AllNodes() {
		for _, k := range children(n) {
			m[k] = append(m[k], n)
		}
	}
	return m
}

// reach finds the nodes to which the loss's gradient flows. Where it is cut off although a trained parameter lies behind, that is an
// error, for a model would silently train in part only.
func (b *Builder) reach() map[*Node]bool {
	trained := map[*Node]bool{} // depends on a parameter that is trained
	for _, n := range b.g.AllNodes() {
		l := b.leaves[n]
		trained[n] = l != nil && l.kind == leafParam && !l.param.Frozen
		if c, ok := n.Op().(*call); ok && c.attrs.Bool("stop") {
			continue
		}
		for _, k := range children(n) {
			trained[n] = trained[n] || trained[k]
		}
	}
	reached := map[*Node]bool{b.scaled: true}
	nodes := b.g.AllNodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		sd, ok := n.Op().(gorgonia.SDOp)
		if !reached[n] || !ok {
			continue
		}
		kids := children(n)
		for j, d := range sd.DiffWRT(len(kids)) {
			if d {
				reached[kids[j]] = true
			} else if trained[kids[j]] {
				b.cut(n, j)
			}
		}
	}
	return reached
}

// cut reports an edge through which no gradient flows, unless that is what the user or the kind wants.
func (b *Builder) cut(n *Node, j int) {
	const hint = "\nhint: wrap its input in Builder.StopGrad if no gradient should flow there"
	switch o := n.Op().(type) {
	case *call:
		if !o.attrs.Bool("stop") {
			b.Failf("the loss depends on a trained parameter through %s %s(input %d), which has no gradient"+hint, o.kind.Name, where(o), j)
		}
	case *pick:
		for _, i := range o.main.kind.ZeroGrad {
			if i == o.i {
				return
			}
		}
		b.Failf("the loss depends on a trained parameter through output %d of %s %s, which has no gradient"+hint, o.i, o.main.kind.Name, where(o.main))
	}
}

func where(c *call) string {
	if c.path == "" {
		return ""
	}
	return fmt.Sprintf("of %q ", c.path)
}
