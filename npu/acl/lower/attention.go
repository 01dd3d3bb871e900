package lower

import (
	"math"
	"slices"

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

// sight: a causal mask has an own mode, in which the mask does not grow with the lengths. All others are one of bytes, 1 where a key is hidden, for each
// sequence, or each head of it. next is the input of the first.
func (b *builder) sight(next int, q, k Tensor) sight {
	a, n, s, t := b.op.Attrs, q.Dims[0], q.Dims[1], k.Dims[1]
	take := func() Tensor {
		next++
		return b.in(next - 1)
	}
	var parts []Tensor
	if a.Bool("seg") {
		of, other := take(), b.temp(Bool, n, 1, s, s)
		b.call("NeTensor", of.reshape(n, 1, s, 1), of.reshape(n, 1, 1, s), other)
		parts = append(parts, other)
	}
	if a.Bool("keys") {
		of, hidden := take(), b.temp(Bool, n, 1, 1, t)
		b.call("EqScalar", of.reshape(n, 1, 1, t), integer(Int32, 0), hidden)
		parts = append(parts, hidden)
	}
	if a.Bool("mask") {
		of := take()
		hidden := b.temp(Bool, of.Dims...)
		b.call("EqScalar", of, integer(Int32, 0), hidden)
		parts = append(parts, hidden)
	}
	switch causal := a.Bool("causal"); {
	case len(parts) == 0 && causal:
		return sight{b.later(), 3}
	case len(parts) == 0:
		return sight{null{}, 0}
	case causal:
		later := b.temp(Bool, 1, 1, s, t)
		b.call("GtTensor", b.count(t).reshape(1, 1, 1, t), b.count(t).slice(0, t-s, t).reshape(1, 1, s, 1), later)
		parts = append(parts, later)
	}
	return sight{b.hidden(parts, n, s), 0}
}

// hidden combines masks into one of a shape that the operators take: [1 1 S T], [B 1 S T] or [B H S T].
func (b *builder) hidden(parts []Tensor, n, s int64) Tensor {
	all := parts[0]
	for _, p := range parts[1:] {
		dims := slices.Clone(all.Dims)
		for i := range dims {
			dims[i] = max(dims[i], p.Dims[i])
		}
		to := b.temp(Bool, dims...)
		b.call("LogicalOr", all, p, to)
		all = to
	}
	dims := slices.Clone(all.Dims)
	if dims[2] = s; dims[1] > 1 {
		dims[0] = n
	}
	if slices.Equal(dims, all.Dims) {
		return all
	}
	to := b.temp(Bool, dims...)
	b.call("InplaceCopy", to, all.broadcast(dims...))
	return to
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
	see := b.sight(3, q, b.in(1))
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
	see := b.sight(6, q, k)
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
