package nn

import (
	"github.com/gotrain/gotrain/graph"
)

// MultiHeadAttention is self-attention (arXiv 1706.03762) on x [B S D], with q, k and v of all heads in one product, as in timm: the parameters qkv.weight
// [3D D], qkv.bias [3D], proj.weight [D D] and proj.bias [D]. The zero Mask is bidirectional.
type MultiHeadAttention struct {
	Heads  int
	NoBias bool            // of qkv; proj always has one
	Mask   graph.Attention // who sees whom
	Drop   float64         // dropout of the result
	Init   graph.Init      // of both weights; the zero value is that of Linear
	Frozen bool
}

// Apply implements Layer.
func (m MultiHeadAttention) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	b.In(name, func() {
		if r := len(b.Desc(x).Shape); r != 3 {
			b.Failf("attention of a tensor of rank %d, want [B S D]", r)
			return
		}
		batch, s, d := b.Dim(x, 0), b.Dim(x, 1), b.Dim(x, 2)
		if m.Heads < 1 || d%m.Heads != 0 {
			b.Failf("%d channels do not divide into %d heads", d, m.Heads)
			return
		}
		qkv := Linear{Out: 3 * d, NoBias: m.NoBias, Init: m.Init, Frozen: m.Frozen}.Apply(b, "qkv", x)
		part := func(i int) *graph.Node {
			return b.Reshape(b.Slice(qkv, 2, i*d, (i+1)*d), batch, s, m.Heads, d/m.Heads)
		}
		o := b.Reshape(b.Attention(part(0), part(1), part(2), m.Mask), batch, s, d)
		x = b.Dropout(Linear{Out: d, Init: m.Init, Frozen: m.Frozen}.Apply(b, "proj", o), m.Drop)
	})
	return x
}
