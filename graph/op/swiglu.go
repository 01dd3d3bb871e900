package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.SwiGLU), Grad: gradSwiGLU, FLOPs: perElem(6)})
	Register(&Kind{Kind: kind.Of(npu.SwiGLUBwd), FLOPs: perElem(12)})
}

func gradSwiGLU(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	d := r.many(npu.SwiGLUBwd, nil, c.DOut, c.In[0], c.In[1])
	return r.done(d[0], d[1])
}
