package graph

import "github.com/gotrain/gotrain/npu"

// Embedding looks rows up: ids i32[…], w [V D]. Result [… D].
func (b *Builder) Embedding(ids, w *Node) *Node {
	return b.apply(npu.Embedding, nil, []*Node{ids, w})
}

// RMSNorm divides x [… D] by its root mean square over the last axis and multiplies by w [D] (arXiv 1910.07467).
func (b *Builder) RMSNorm(x, w *Node, eps float64) *Node {
	return b.apply(npu.RMSNorm, npu.Attrs{"eps": eps, "add": false}, []*Node{x, w})
}

// LayerNorm normalises x [… D] over the last axis and applies weight and bias [D] (arXiv 1607.06450): (x-mean)/√(variance+eps)·weight + bias, with the
// biased variance. weight and bias may be nil: 1 and 0.
func (b *Builder) LayerNorm(x, weight, bias *Node, eps float64) *Node {
	if b.err == nil && (weight == nil || bias == nil) {
		d := b.Dim(x, -1)
		if weight == nil {
			weight = b.Const(npu.F32, 1, d)
		}
		if bias == nil {
			bias = b.Const(npu.F32, 0, d)
		}
	}
	return b.apply(npu.LayerNorm, npu.Attrs{"eps": eps, "add": false}, []*Node{x, weight, bias})
}

// Rotary says how Builder.Rope turns. The zero value of a field is what its comment says.
type Rotary struct {
	Theta    float64 // base of the frequencies; 10000
	Adjacent bool    // pairs are neighbours, as Meta's weights want it; else halves of a head, as Hugging Face's do
	// Scaling of Llama 3.1 (arXiv 2407.21783): low frequencies are divided by Factor, high ones stay. Factor 0 or 1: none.
	Factor, Low, High float64
	Original          int
}

func (r Rotary) attrs(pos bool) npu.Attrs {
	a := npu.Attrs{"theta": r.Theta, "pairs": "half", "inverse": false, "pos": pos}
	if r.Theta == 0 {
		a["theta"] = 1e4
	}
	if r.Adjacent {
		a["pairs"] = "adjacent"
	}
	if r.Factor > 1 {
		a["factor"], a["low"], a["high"], a["original"] = r.Factor, r.Low, r.High, r.Original
	}
	return a
}

// Rope turns pairs of x [B S H D] by angles that grow with the position (arXiv 2104.09864). pos i32[B S] gives the position of each token; nil is
// its index along S.
func (b *Builder) Rope(x, pos *Node, r Rotary) *Node {
	if pos == nil {
		return b.apply(npu.Rope, r.attrs(false), []*Node{x})
	}
	return b.apply(npu.Rope, r.attrs(true), []*Node{x, pos})
}

// CacheWrite puts row (b, s) of x [B S G D] at place pos[b,s] of cache [B T G D], a State, in place. Read the cache by the node that it
// returns: its Attention then comes after it.
func (b *Builder) CacheWrite(cache, x, pos *Node) *Node {
	if l := b.leaves[cache]; b.err == nil && (l == nil || l.kind != leafState) {
		b.Failf("cache_write: the cache must be made by Builder.State, because it is updated in place")
	}
	return b.apply(npu.CacheWrite, nil, []*Node{cache, x, pos})
}

// SwiGLU is silu(gate)·up (arXiv 2002.05202).
func (b *Builder) SwiGLU(gate, up *Node) *Node {
	return b.apply(npu.SwiGLU, nil, []*Node{gate, up})
}

// LinearCrossEntropy is CrossEntropy of the logits x·wᵀ, for x [… D], w [V D] and labels i32[…]; the logits are made some rows at a time and
// never kept, which for a large vocabulary is most of the memory. It gives the SUM of the losses of the valid rows, and their number.
func (b *Builder) LinearCrossEntropy(x, w, labels *Node, opts ...LossOption) (loss, count *Node) {
	o := b.options("LinearCrossEntropy", opts, "IgnoreIndex")
	x, labels = b.rows(x, labels)
	out := b.Apply(npu.LinearCrossEntropy, npu.Attrs{"ignore_index": o.ignore}, x, w, labels)
	return out[0], out[1]
}
