package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.Rope), Grad: gradRope, FLOPs: perElem(3),
		DiffWRT: func(_ npu.Attrs, n int) []bool { return append([]bool{true}, make([]bool, n-1)...) },
	})
	Register(&Kind{
		Kind: kind.Of(npu.Attention), Grad: gradAttention, FLOPs: attentionFLOPs(2),
		DiffWRT: func(_ npu.Attrs, n int) []bool { return append([]bool{true, true, true}, make([]bool, n-3)...) },
	})
	Register(&Kind{Kind: kind.Of(npu.AttentionBwd), FLOPs: attentionFLOPs(5)})
	Register(&Kind{
		Kind: kind.Of(npu.AttentionCached), FLOPs: func(o npu.Op) int64 {
			q, k := o.In[0].Shape, o.In[1].Shape
			return 4 * q.Elems() * int64(k[1])
		},
	})
	Register(&Kind{Kind: kind.Of(npu.CacheWrite), FLOPs: noFLOPs, Indexes: func(_ npu.Attrs, in []npu.Desc) []Index {
		return []Index{{Input: 2, Below: in[0].Shape[1], Negative: true}}
	}})
}

func gradRope(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	a := c.Attrs.Clone()
	a["inverse"] = !a.Bool("inverse")
	g := make([]Ref, len(c.In))
	g[0] = r.do(npu.Rope, a, append([]Ref{c.DOut}, c.In[1:]...)...)
	return r.done(g...)
}

func gradAttention(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	in := append([]Ref{c.DOut, c.In[0], c.In[1], c.In[2], c.Out[0], c.Out[1]}, c.In[3:]...)
	d := r.many(npu.AttentionBwd, c.Attrs, in...)
	return r.done(append(d[:3:3], make([]Ref, len(c.In)-3)...)...)
}

// attentionFLOPs counts products of S×T×D, of which a causal one does half.
func attentionFLOPs(products int64) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		q := o.In[0].Shape
		n := products * 2 * q.Elems() * int64(o.In[2].Shape[1])
		if o.Attrs.Bool("causal") {
			n /= 2
		}
		return n
	}
}
