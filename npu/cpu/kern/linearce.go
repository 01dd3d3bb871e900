//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

// LinearCE provides the steps of cross-entropy with its linear layer that are not matrix products. They work on Rows rows of x [Rows D], and on tiles of their
// logits for a few adjacent classes, float32 [Rows cols]. Type is that of x, w and of the results of a tile. Labels equal to Ignore mark rows that do not
// count.
//
// In one pass over the classes (arXiv 1805.02867) Tile keeps of each row a logit not much below the largest (top), Σ exp(logit - top), and the logit of its
// label. To get gradients without a second product it stores e = exp(logit - top) of the tile with the current top (tops), and omits the label's own, which
// would lose 1 - p in the rounding of p. So the gradient by logits is whole·exp(tops - top)·e, and hit at the label:
//
//	acc = Σ over tiles of e·w, brought to the new top by Tile; dx = whole·acc + hit·w[label]      (DX)
//	dw of a tile = eᵀ·(whole·exp(tops - top)·x), the factor by Scale; dw[label] += hit·x          (Hits)
type LinearCE struct {
	Type    npu.DType
	Rows, D int
	Ignore  int
}

func (l LinearCE) call(kernel string, n ...int64) *Call {
	dt, ok := act(l.Type)
	if !ok {
		return nil
	}
	c := &Call{kernel: kernel, isa: best(), dt: dt, n: n}
	for i := range maxArgs {
		c.slots = append(c.slots, i)
	}
	return c
}

// withArgs sets the number of arguments of Bind.
func (c *Call) withArgs(n int) *Call {
	if c != nil {
		c.slots = c.slots[:n]
	}
	return c
}

// Labels fails if a label is neither Ignore nor a class: labels.
func (l LinearCE) Labels(classes int) *Call {
	return l.call("lce_labels", int64(l.Rows), int64(classes), int64(l.Ignore)).withArgs(1)
}

// Tile processes a tile of cols classes from class at on: tile, labels, top, sum f64, at, e, tops, acc; the last three are nil if no gradient is needed.
// For the first tile of its rows the previous values of top, sum, at and acc are ignored.
func (l LinearCE) Tile(at, cols int, first bool) *Call {
	return l.call("lce_tile", int64(l.Rows), int64(cols), int64(l.Ignore), int64(at), int64(l.D), int64(bit(first, 1))).withArgs(8)
}

// End completes rows: labels, top, sum, at, dloss, lse, loss f64, whole, hit. lse may be nil; dloss, whole and hit together too.
func (l LinearCE) End() *Call {
	return l.call("lce_end", int64(l.Rows), 0, int64(l.Ignore)).withArgs(9)
}

// Loss adds up: labels, loss f64 of each row, loss, count or nil.
func (l LinearCE) Loss() *Call {
	return l.call("lce_loss", int64(l.Rows), 0, int64(l.Ignore)).withArgs(4)
}

// Scale computes the factor of a tile's e in dw: x, tops, top, whole, result like x.
func (l LinearCE) Scale() *Call { return l.call("lce_scale", int64(l.Rows), int64(l.D)).withArgs(5) }

// DX completes the gradient: acc, w, labels, whole, hit, dx.
func (l LinearCE) DX() *Call {
	return l.call("lce_dx", int64(l.Rows), int64(l.D), int64(l.Ignore)).withArgs(6)
}

// Hits adds the contributions of the rows' own classes to the gradient of w: x, labels, hit, dw f32[classes D].
func (l LinearCE) Hits() *Call {
	return l.call("lce_hits", int64(l.Rows), int64(l.D), int64(l.Ignore)).withArgs(4)
}

// Prob computes the gradient by the logits of a tile with known lse: tile, labels, lse, dloss, result [Rows cols].
func (l LinearCE) Prob(at, cols int) *Call {
	return l.call("lce_prob", int64(l.Rows), int64(cols), int64(l.Ignore), int64(at)).withArgs(5)
}
