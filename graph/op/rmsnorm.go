package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.RMSNorm), Grad: gradRMSNorm, FLOPs: perElem(4)})
	Register(&Kind{Kind: kind.Of(npu.RMSNormBwd), FLOPs: perElem(9)})
}

// gradRMSNorm knows the form without the sum only: the plan makes the other one, after differentiation.
func gradRMSNorm(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	d := r.many(npu.RMSNormBwd, npu.Attrs{"eps": c.Attrs.Float("eps", 1e-5), "add": false}, c.DOut, c.In[0], c.In[1], c.Out[1])
	return r.done(d[0], d[1])
}
