package graph

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Attention says which keys the queries of Builder.Attention see. The zero value: all of them (bidirectional), as PyTorch's
// scaled_dot_product_attention without a mask. A key is seen where all that is set agrees. Masks are whole numbers and have no gradient. What is added to
// scores (a float attn_mask, relative positions, ALiBi) is composed of MatMul, Add and Softmax: see the example of Builder.Attention with a bias.
type Attention struct {
	Causal   bool    // query s sees keys up to its own place: t ≤ s + (T-S)
	Segments *Node   // i32[B S], S = T: only keys of the same number, such as those of the same document of a packed row; nil: all
	Keys     *Node   // i32[B T]: keys are seen where it is not 0 (key padding; Hugging Face's attention_mask); nil: all
	Mask     *Node   // i32[B S T], [S T] or [B|1 H|1 S T]: seen where it is not 0 (PyTorch's boolean attn_mask); nil: all
	Scale    float64 // of the scores; 0 is 1/√D
}

// Attention lets each query of q [B S H D] read the keys and values of k, v [B T G D] that a shows it; query head h reads key head h/(H/G)
// (arXiv 1706.03762, 2305.13245). Result [B S H D]; a query that sees nothing gets zeros. The S×T scores are never stored (arXiv 2205.14135).
//
//	o := b.Attention(q, k, v, graph.Attention{})             // an encoder's: every token sees every token
//	o := b.Attention(q, k, v, graph.Attention{Causal: true}) // a decoder's
func (b *Builder) Attention(q, k, v *Node, a Attention) *Node {
	b.whole("Segments", a.Segments)
	b.whole("Keys", a.Keys)
	b.whole("Mask", a.Mask)
	attrs, in := npu.Attrs{"scale": b.scale(q, a.Scale), "causal": a.Causal, "seg": a.Segments != nil}, []*Node{q, k, v}
	if a.Segments != nil {
		in = append(in, a.Segments)
	}
	if a.Keys != nil {
		attrs["keys"], in = true, append(in, a.Keys)
	}
	if a.Mask != nil {
		attrs["mask"], in = true, append(in, b.heads(a.Mask))
	}
	return b.apply(npu.Attention, attrs, in)
}

// whole refuses a mask of floats, which PyTorch adds to the scores.
func (b *Builder) whole(name string, mask *Node) {
	if mask == nil || b.err != nil {
		return
	}
	if d := b.Desc(mask); d.DType.IsFloat() {
		b.Failf("attention: %s is %v, want i32: it says which keys are seen\nhint: what is added to scores, a float attn_mask, is "+
			"b.Softmax(b.Add(scores, bias)) with scores = b.Affine(b.MatMul(q, k, false, true), scale, 0) of q, k [B H S D]: "+
			"see the example of Builder.Attention with a bias", name, d)
	}
}

// heads is a mask [S T] or [B S T] as one for all heads.
func (b *Builder) heads(mask *Node) *Node {
	switch s := b.Desc(mask).Shape; len(s) {
	case 2:
		return b.Reshape(mask, 1, 1, s[0], s[1])
	case 3:
		return b.Reshape(mask, s[0], 1, s[1], s[2])
	}
	return mask
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
