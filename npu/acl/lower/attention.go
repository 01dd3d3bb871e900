package lower

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Lanes is the layout of attention's result lse: the maximum and the sum of each row of scores, each 8 times, as FlashAttentionScore keeps them for its
// gradient.
const Lanes npu.Layout = "acl:lanes"

// lanes is how often FlashAttentionScore repeats each of them.
const lanes = 8

var attentionRules = map[string]rule{
	npu.Attention: {
		lower: lowerAttention, needs: []string{"FlashAttentionScore"},
		choose: func(op *npu.Op, _ Caps) {
			if len(op.Out) > 1 {
				op.Out[1].Layout = Lanes
			}
		},
	},
	npu.AttentionBwd: {
		lower: lowerAttentionBwd, needs: []string{"FlashAttentionScoreGrad"},
		choose: func(op *npu.Op, _ Caps) { op.In[5].Layout = Lanes },
	},
}

// sight is what queries see: arguments of both operators.
type sight struct {
	mask any // a Tensor or null
	mode int
}

// sight: a causal mask has an own mode, in which the mask does not grow with the lengths. Segments need one of S×S for each sequence.
func (b *builder) sight(seg int, s int64) sight {
	causal := b.op.Attrs.Bool("causal")
	switch {
	case b.op.Attrs.Bool("seg"):
	case causal:
		return sight{b.later(), 3}
	default:
		return sight{null{}, 0}
	}
	of := b.in(seg)
	n := of.Dims[0]
	other := b.temp(Bool, n, 1, s, s)
	b.call("NeTensor", of.reshape(n, 1, s, 1), of.reshape(n, 1, 1, s), other)
	if !causal {
		return sight{other, 0}
	}
	later, hidden := b.temp(Bool, 1, 1, s, s), b.temp(Bool, n, 1, s, s)
	b.call("GtTensor", b.count(s).reshape(1, 1, 1, s), b.count(s).reshape(1, 1, s, 1), later)
	b.call("LogicalOr", other, later, hidden)
	return sight{hidden, 0}
}

// checkHeads refuses what the operators refuse.
func (b *builder) checkHeads(q Tensor) {
	if q.Dims[2] > 256 || q.Dims[3] > 768 {
		b.fail("%d heads of width %d\nhint: CANN's flash attention has at most 256 heads of at most 768", q.Dims[2], q.Dims[3])
	}
}

func lowerAttention(b *builder) {
	q := b.in(0)
	b.checkHeads(q)
	see := b.sight(3, q.Dims[1])
	max, sum := b.statistics(q)
	b.call("FlashAttentionScore", q, b.in(1), b.in(2), null{}, null{}, null{}, see.mask, null{}, b.op.Attrs.Float("scale", 0), 1.0,
		math.MaxInt32, math.MaxInt32, int(q.Dims[2]), "BSND", 0, see.mode, max, sum, null{}, b.out(0))
}

// statistics is where the forward pass keeps maximum and sum.
func (b *builder) statistics(q Tensor) (max, sum Tensor) {
	if b.hasOut(1) {
		return parts(b.out(1))
	}
	return parts(b.temp(Float32, 2, q.Dims[0], q.Dims[2], q.Dims[1], lanes))
}

// parts are maximum and sum of a tensor in Lanes.
func parts(t Tensor) (max, sum Tensor) {
	return t.slice(0, 0, 1).squeeze(0), t.slice(0, 1, 2).squeeze(0)
}

func lowerAttentionBwd(b *builder) {
	do, q, k, v, o := b.in(0), b.in(1), b.in(2), b.in(3), b.in(4)
	b.checkHeads(q)
	see := b.sight(6, q.Dims[1])
	max, sum := parts(b.in(5))
	b.call("FlashAttentionScoreGrad", q, k, v, do, null{}, null{}, null{}, see.mask, max, sum, null{}, o, null{}, b.op.Attrs.Float("scale", 0), 1.0,
		math.MaxInt32, math.MaxInt32, int(q.Dims[2]), "BSND", 0, see.mode, b.out(0), b.outOr(1, k.DType, k.Dims...), b.outOr(2, v.DType, v.Dims...), null{})
}

// toLanes: a maximum of lse and a sum of 1 are the same row of scores.
func (b *builder) toLanes() {
	max, sum := parts(described(Ref{Out, 0}, b.op.Out[0]))
	b.call("InplaceCopy", max, b.in(0).unsqueeze(3).broadcast(max.Dims...))
	b.call("InplaceFillScalar", sum, number(1))
}

func (b *builder) fromLanes() {
	max, sum := parts(described(Ref{In, 0}, b.op.In[0]))
	first := func(t Tensor) Tensor { return t.slice(3, 0, 1).squeeze(3) }
	l := b.temp(Float32, b.out(0).Dims...)
	b.call("Log", first(sum), l)
	b.call("Add", first(max), l, number(1), b.out(0))
}
