package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.LinearCrossEntropy), Grad: gradLinearCE, FLOPs: logitFLOPs(1),
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, true, false} }, ZeroGrad: []int{1},
		Indexes: func(a npu.Attrs, in []npu.Desc) []Index {
			return []Index{{Input: 2, Below: in[1].Shape[0], Ignores: true, Ignore: a.Int("ignore_index", -100)}}
		},
	})
	Register(&Kind{Kind: kind.Of(npu.LinearCrossEntropyBwd), FLOPs: logitFLOPs(3)})
	Register(&Kind{Kind: kind.Of(npu.LinearCrossEntropyGrad), FLOPs: logitFLOPs(3)})
}

// logitFLOPs counts products of N×V×D, and what is done to each logit.
func logitFLOPs(products int64) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		x, v := o.In[0].Shape, int64(o.In[1].Shape[0])
		return 2*products*x.Elems()*v + 5*int64(x[0])*v
	}
}

func gradLinearCE(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	d := r.many(npu.LinearCrossEntropyBwd, c.Attrs, c.In[0], c.In[1], c.In[2], c.Out[2], c.DOut)
	dw := d[1]
	if r.err == nil && dw.Desc().DType != c.In[1].Desc().DType {
		dw = r.do(npu.Convert, npu.Attrs{"dtype": c.In[1].Desc().DType.String()}, dw)
	}
	return r.done(d[0], dw, nil)
}
