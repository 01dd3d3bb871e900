package lower

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// The fused operators CrossEntropyLoss and its gradient do not fit: the gradient refuses smoothing and i32 labels. Losses are composed, in f32.
var lossRules = map[string]rule{
	npu.CrossEntropy:    {lower: lowerCrossEntropy, needs: []string{"LogSumExp", "Gather"}},
	npu.CrossEntropyBwd: {lower: lowerCrossEntropyBwd, needs: []string{"InplaceScatter"}},
	npu.TopK:            {lower: lowerTopK, needs: []string{"Gather"}},
}

// labels are the labels of rows, prepared.
type labels struct {
	raw  Tensor // i32[N]
	safe Tensor // i32[N], inside 0…C-1
	ok   Tensor // bool[N]: the row counts
}

func (b *builder) labels(raw Tensor, classes int64) labels {
	l := labels{raw: raw, safe: b.temp(Int32, raw.Dims...), ok: b.temp(Bool, raw.Dims...)}
	b.call("Clamp", raw, integer(Int32, 0), integer(Int32, int(classes-1)), l.safe) // an index outside is undefined, and may end the process
	b.call("NeScalar", raw, integer(Int32, b.op.Attrs.Int("ignore_index", -100)), l.ok)
	return l
}

// sums adds up the losses of the rows that count. A label outside of the classes makes its loss NaN, which ends the run: the operators do not
// report it. each is overwritten.
func (b *builder) sums(l labels, each, loss, count Tensor) {
	n := each.Dims
	wrong, not, one := b.temp(Bool, n...), b.temp(Bool, n...), b.temp(Float32, n...)
	b.call("NeTensor", l.raw, l.safe, wrong)
	b.call("InplaceMaskedFillScalar", each, wrong, number(math.NaN()))
	b.call("LogicalNot", l.ok, not)
	b.call("InplaceMaskedFillScalar", each, not, number(0))
	b.call("Cast", l.ok, Float32, one)
	b.call("ReduceSum", each, []int64{0}, false, Float32, loss)
	b.call("ReduceSum", one, []int64{0}, false, Float32, count)
}

// picked is x[r, label of r] for every row.
func (b *builder) picked(x Tensor, safe Tensor) Tensor {
	t := b.temp(x.DType, x.Dims[0], 1)
	b.call("Gather", x, 1, safe.unsqueeze(1), t)
	return t
}

func lowerCrossEntropy(b *builder) {
	x, s := b.full(b.in(0)), b.op.Attrs.Float("smoothing", 0)
	n := x.Dims[0]
	l := b.labels(b.in(1), x.Dims[1])
	lse, each := b.outOr(2, Float32, n), b.temp(Float32, n)
	b.call("LogSumExp", x, []int64{1}, false, lse)
	b.call("Sub", lse, b.picked(x, l.safe).squeeze(1), number(1-s), each)
	if s > 0 {
		mean := b.temp(Float32, n)
		b.call("Mean", x, []int64{1}, false, Float32, mean)
		b.call("InplaceSub", each, mean, number(s))
	}
	b.sums(l, each, b.out(0), b.outOr(1, Float32))
}

// probabilities makes g, f32, of logits: the gradient of the sum of the losses, (softmax - smoothed target)·dloss, 0 for rows that do not count. g may
// be the logits.
func (b *builder) probabilities(logits, g, lse, dloss Tensor, l labels, smoothing float64) {
	n, c := g.Dims[0], g.Dims[1]
	b.call("Sub", logits, lse.unsqueeze(1), number(1), g)
	b.call("Exp", g, g)
	if smoothing > 0 {
		b.call("InplaceAdds", g, number(-smoothing/float64(c)), number(1))
	}
	b.call("InplaceScatter", g, 1, l.safe.unsqueeze(1), b.value(smoothing-1).broadcast(n, 1), 1)
	row := b.temp(Float32, n)
	b.call("Mul", l.ok, dloss, row)
	b.call("InplaceMul", g, row.unsqueeze(1))
}

func lowerCrossEntropyBwd(b *builder) {
	x, out := b.in(0), b.out(0)
	l := b.labels(b.in(1), x.Dims[1])
	b.into(out, func(g Tensor) { b.probabilities(x, g, b.in(2), b.in(3), l, b.op.Attrs.Float("smoothing", 0)) })
}

// lowerTopK: the rank of a label is how many logits are larger, or equal with a lower index.
func lowerTopK(b *builder) {
	x := b.in(0)
	n, c := x.Dims[0], x.Dims[1]
	l := b.labels(b.in(1), c)
	mine := b.picked(x, l.safe)
	before, same, lower := b.temp(Bool, n, c), b.temp(Bool, n, c), b.temp(Bool, n, c)
	b.call("GtTensor", x, mine, before)
	b.call("EqTensor", x, mine, same)
	b.call("LtTensor", b.count(c).reshape(1, c), l.safe.unsqueeze(1), lower)
	tie, all := b.temp(Bool, n, c), b.temp(Bool, n, c)
	b.call("LogicalAnd", same, lower, tie)
	b.call("LogicalOr", before, tie, all)
	ones, rank := b.temp(Float32, n, c), b.temp(Float32, n)
	b.call("Cast", all, Float32, ones)
	b.call("ReduceSum", ones, []int64{1}, false, Float32, rank)
	among, number_, counts, sure := b.temp(Bool, n), b.temp(Bool, n), b.temp(Bool, n), b.temp(Bool, n)
	b.call("LtScalar", rank, number(float64(b.op.Attrs.Int("k", 1))), among)
	b.call("EqTensor", mine.squeeze(1), mine.squeeze(1), number_) // not for NaN
	b.call("LogicalAnd", among, number_, sure)
	b.call("LogicalAnd", sure, l.ok, counts)
	hit := b.temp(Float32, n)
	b.call("Cast", counts, Float32, hit)
	b.call("ReduceSum", hit, []int64{0}, false, Float32, b.out(0))
}
