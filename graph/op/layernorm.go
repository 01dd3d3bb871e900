package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.LayerNorm), Grad: gradLayerNorm, FLOPs: perElem(7)})
	Register(&Kind{Kind: kind.Of(npu.LayerNormBwd), FLOPs: perElem(14)})
}

// gradLayerNorm knows the form without the sum only: the plan makes the other one, after differentiation.
func gradLayerNorm(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	a := npu.Attrs{"eps": c.Attrs.Float("eps", 1e-5), "add": false}
	d := r.many(npu.LayerNormBwd, a, c.DOut, c.In[0], c.In[1], c.Out[1], c.Out[2])
	return r.done(d[0], d[1], d[2])
}
