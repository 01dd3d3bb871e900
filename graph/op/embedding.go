package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.Embedding), Grad: gradEmbedding, FLOPs: noFLOPs,
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{false, true} },
		Indexes: func(_ npu.Attrs, in []npu.Desc) []Index { return []Index{{Input: 0, Below: in[1].Shape[0]}} },
	})
	Register(&Kind{Kind: kind.Of(npu.EmbeddingBwd), FLOPs: perElem(1)})
}

func gradEmbedding(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	dw := r.do(npu.EmbeddingBwd, npu.Attrs{"rows": c.In[1].Desc().Shape[0], "add": false}, c.DOut, c.In[0])
	return r.done(nil, dw)
}
