package graph

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Attention says which keys the queries of Builder.Attention see. The zero value: all of them (bidirectional), as PyTorch's
// scaled_dot_product_attention without a mask.
type Attention struct {
	Causal   bool    // query s sees keys up to its own place: t ≤ s + (T-S)
	Segments *Node   // i32[B S], S = T: only keys of the same number, such as those of the same document of a packed row; nil: all
	Scale    float64 // of the scores; 0 is 1/√D
}

// Attention lets each query of q [B S H D] read the keys and values of k, v [B T G D] that a shows it; query head h reads key head h/(H/G)
// (arXiv 1706.03762, 2305.13245). Result [B S H D]; a query that sees nothing gets zeros. The S×T scores are never stored (arXiv 2205.14135).
//
//	o := b.Attention(q, k, v, graph.Attention{})             // an encoder's: every token sees every token
//	o := b.Attention(q, k, v, graph.Attention{Causal: true}) // a decoder's
func (b *Builder) Attention(q, k, v *Node, a Attention) *Node {
	in := []*Node{q, k, v}
	if a.Segments != nil {
		in = append(in, a.Segments)
	}
	return b.apply(npu.Attention, npu.Attrs{"scale": b.scale(q, a.Scale), "causal": a.Causal, "seg": a.Segments != nil}, in)
}

// scale is the given one, or 1/√D.
func (b *Builder) scale(q *Node, scale float64) float64 {
	if scale == 0 {
		return 1 / math.Sqrt(float64(b.Dim(q, -1)))
	}
	return scale
}

// AttentionCached is Attention of new tokens to a cache: query (b, s) of q [B S H D] reads places 0 … pos[b,s] of k and v [B T G D]. It has no gradient.
func (b *Builder) AttentionCached(q, k, v, pos *Node) *Node {
	return b.apply(npu.AttentionCached, npu.Attrs{"scale": b.scale(q, 0)}, []*Node{q, k, v, pos})
}
