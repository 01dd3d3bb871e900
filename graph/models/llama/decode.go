package llama

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Step is the input of a Llama during generation: for each of B texts up to S new tokens and their places in the text, from 0. A place of -1 is no token: it is
// neither stored nor read. Last is the index, within the S tokens, of each text's newest one.
type Step struct {
	Tokens *graph.Node // i32[B S]
	Pos    *graph.Node // i32[B S]
	Last   *graph.Node // i32[B]
}

// Decode adds the network for writing: keys and values of earlier tokens are kept in States of room tokens, named
// model.layers.N.self_attn.k_cache and v_cache. Result: the logits f32[B V] of what follows each text's newest token.
func (c Config) Decode(b *graph.Builder, in Step, room int) *graph.Node {
	m := c.start(b, Weights{})
	rows := b.Dim(in.Tokens, 0)
	cache := func(name string) *graph.Node {
		return b.State(name, npu.Shape{rows, room, c.KVHeads, c.Head()}, 0)
	}
	m.attend = func(_ int, q, k, v *graph.Node) *graph.Node {
		keys := b.CacheWrite(cache("k_cache"), b.Rope(k, in.Pos, m.rotary), in.Pos)
		values := b.CacheWrite(cache("v_cache"), v, in.Pos)
		return b.AttentionCached(b.Rope(q, in.Pos, m.rotary), keys, values, in.Pos)
	}
	x, head := m.body(in.Tokens)
	if b.Dim(in.Tokens, 1) > 1 { // only the newest tokens are asked
		x = b.Embedding(in.Last, x)
	}
	// Their sums are float32 whatever is multiplied, and are chosen from as they are: rounding all of a vocabulary's would cost a pass over it, and ties.
	return b.Apply(npu.MatMul, npu.Attrs{"tb": true, "out": "f32"}, x, head)[0]
}
