package graph

import "errors"

// ErrNil is a node that is not there.
var ErrNil = errors.New("nil node")

const nilHint = "check the names of inputs, and the errors of raw Gorgonia ops (wrap them in Builder.Raw)"

// Bound says what an input of whole numbers may hold, because the graph indexes with it: 0 … Below-1.
type Bound struct {
	Input   string
	Below   int
	Ignores bool // Ignore is allowed too: a label that does not count
	Ignore  int
}

// Bounds lists the bounds of inputs that losses and embeddings read directly.
func (b *Builder) Bounds() []Bound { return b.bounds }

// bound notes that a node, where it is an input, indexes into below places.
func (b *Builder) bound(n *Node, below int, ignores bool, ignore int) {
	if l := b.leaves[n]; b.err == nil && l != nil && l.kind == leafInput {
		b.bounds = append(b.bounds, Bound{l.name, below, ignores, ignore})
	}
}
