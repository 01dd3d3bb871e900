package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	for _, k := range [][2]string{{npu.Softmax, npu.SoftmaxBwd}, {npu.LogSoftmax, npu.LogSoftmaxBwd}} {
		bwd := k[1]
		Register(&Kind{Kind: kind.Of(k[0]), FLOPs: perElem(5), Grad: func(t Tape, c Call) ([]Ref, error) {
			r := &rule{t: t}
			return r.done(r.do(bwd, nil, c.DOut, c.Out[0]))
		}})
		Register(&Kind{Kind: kind.Of(bwd), FLOPs: perElem(4)})
	}
	Register(&Kind{
		Kind: kind.Of(npu.CrossEntropy), Grad: gradCrossEntropy, FLOPs: perElem(5), Indexes: labels,
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, false} }, ZeroGrad: []int{1},
	})
	Register(&Kind{Kind: kind.Of(npu.CrossEntropyBwd), FLOPs: perElem(4)})
	Register(&Kind{Kind: kind.Of(npu.TopK), FLOPs: perElem(1), Indexes: labels})
}

func gradCrossEntropy(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.CrossEntropyBwd, c.Attrs, c.In[0], c.In[1], c.Out[2], c.DOut), nil)
}
