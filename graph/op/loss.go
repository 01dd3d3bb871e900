package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.OneHot),
		Indexes: func(a npu.Attrs, in []npu.Desc) []Index {
			return []Index{{Input: 0, Below: a.Int("classes", 0), Ignores: true, Ignore: a.Int("ignore_index", -100)}}
		},
	})
	// Targets of a cross-entropy are data. A path from a trained parameter through one is an error of the graph, which StopGrad mends.
	Register(&Kind{
		Kind: kind.Of(npu.SoftCrossEntropy), FLOPs: perElem(7), DiffWRT: onlyFirst, ZeroGrad: []int{1},
		Grad: func(t Tape, c Call) ([]Ref, error) {
			r := &rule{t: t}
			return r.done(r.do(npu.SoftCrossEntropyBwd, nil, c.In[0], c.In[1], c.Out[2], c.DOut), nil)
		},
	})
	Register(&Kind{Kind: kind.Of(npu.SoftCrossEntropyBwd), FLOPs: perElem(6)})
	Register(&Kind{
		Kind: kind.Of(npu.BCE), FLOPs: perElem(12), DiffWRT: onlyFirst, ZeroGrad: []int{1},
		Grad: func(t Tape, c Call) ([]Ref, error) {
			r := &rule{t: t}
			d := r.do(npu.BCEBwd, c.Attrs, append(c.In[:len(c.In):len(c.In)], c.DOut)...)
			return r.done(append([]Ref{d}, make([]Ref, len(c.In)-1)...)...)
		},
	})
	Register(&Kind{Kind: kind.Of(npu.BCEBwd), FLOPs: perElem(8)})
	Register(&Kind{
		Kind: kind.Of(npu.MSE), FLOPs: perElem(3), Grad: gradMSE, ZeroGrad: []int{1},
		DiffWRT: func(_ npu.Attrs, n int) []bool { return []bool{true, true, false}[:n] },
	})
	Register(&Kind{Kind: kind.Of(npu.MSEBwd), FLOPs: perElem(3)})
}

// onlyFirst: input 0 has a gradient, those behind it have none.
func onlyFirst(_ npu.Attrs, n int) []bool { return append([]bool{true}, make([]bool, n-1)...) }

// gradMSE: the target's gradient is that of x with the other sign; where nothing is trained behind the target, the plan drops it.
func gradMSE(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	dx := r.do(npu.MSEBwd, c.Attrs, append(c.In[:len(c.In):len(c.In)], c.DOut)...)
	dt := dx
	if r.err == nil && dx.Desc().DType != c.In[1].Desc().DType {
		dt = r.do(npu.Convert, npu.Attrs{"dtype": c.In[1].Desc().DType.String()}, dx)
	}
	return r.done(append([]Ref{dx, r.unary("neg", dt)}, make([]Ref, len(c.In)-2)...)...)
}
