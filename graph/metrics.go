package graph

import "github.com/gotrain/gotrain/npu"

// Predictions is 1 at the largest of each row of logits [N C] and 0 elsewhere, f32: argmax as one-hot rows. Of equal ones the first counts; a row with a NaN is
// all 0. No gradient.
func (b *Builder) Predictions(logits *Node) *Node {
	logits = b.matrix(logits)
	most := b.GreaterEqual(logits, b.Reduce("max", logits, true, -1))
	return b.Greater(most, b.before(most))
}

// before is 1 where a row x [N C] of zeros and ones has a 1 further to the left: a running maximum, in log2(C) steps.
func (b *Builder) before(x *Node) *Node {
	c := b.Dim(x, -1)
	x = b.right(x, 1)
	for by := 1; by < c-1 && b.err == nil; by *= 2 {
		x = b.Maximum(x, b.right(x, by))
	}
	return x
}

// right moves x [N C] to the right and fills up with zeros.
func (b *Builder) right(x *Node, by int) *Node {
	c := b.Dim(x, -1)
	if by >= c {
		return b.Affine(x, 0, 0)
	}
	return b.apply(npu.Pad, npu.Attrs{"before": []int{0, by}, "after": []int{0, 0}}, []*Node{b.Slice(x, 1, 0, c-by)})
}

// ConfusionMatrix counts the rows of logits [… C] by their label i32[…] and by the class that is predicted: f32[C C], one row for each true class, as in
// scikit-learn. Rows whose label is -100 (IgnoreIndex) do not count. It is a sum over the batch: see train.Outputs.Sums. No gradient.
func (b *Builder) ConfusionMatrix(logits, labels *Node, opts ...LossOption) *Node {
	o := b.options("ConfusionMatrix", opts, "IgnoreIndex")
	logits, labels = b.rows(logits, labels)
	hot := b.oneHot(labels, b.Dim(logits, -1), 1, 0, o)
	// In mixed precision operands of 16 bits hold 0 and 1; the counts stay float32.
	return b.Apply(npu.MatMul, npu.Attrs{"ta": true, "out": npu.F32.String()}, hot[0], b.Predictions(logits))[0]
}
