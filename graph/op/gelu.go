package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{Kind: kind.Of(npu.Gelu), Grad: gradGelu, FLOPs: perElem(12)})
	Register(&Kind{Kind: kind.Of(npu.GeluBwd), FLOPs: perElem(18)})
}

func gradGelu(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.GeluBwd, only(c.Attrs, "approximate"), c.DOut, c.In[0]))
}
