package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.BatchNorm), Grad: gradBatchNorm, FLOPs: perElem(7),
		DiffWRT: func(a npu.Attrs, n int) []bool { return firstThree(a, n, true) },
	})
	Register(&Kind{
		Kind: kind.Of(npu.BatchNormInfer), Grad: gradBatchNormInfer, FLOPs: perElem(2),
		DiffWRT: func(a npu.Attrs, n int) []bool { return firstThree(a, n, true) },
	})
	Register(&Kind{Kind: kind.Of(npu.BatchNormBwd), FLOPs: perElem(11)})
}

// firstThree: x, gamma and beta have gradients, running statistics have none, the residual has.
func firstThree(a npu.Attrs, n int, res bool) []bool {
	d := make([]bool, n)
	for i := range d {
		d[i] = i < 3 || (i == 5 && res && a.Bool("add"))
	}
	return d
}

func gradBatchNorm(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	in := []Ref{c.DOut, c.In[0], c.In[1], c.In[2], c.Out[1], c.Out[2]}
	if c.Attrs.Bool("relu") {
		in = append(in, c.Out[0])
	}
	d := r.many(npu.BatchNormBwd, only(c.Attrs, "eps", "relu", "add"), in...)
	g := []Ref{d[0], d[1], d[2], nil, nil}
	if c.Attrs.Bool("add") {
		g = append(g, d[3])
	}
	return r.done(g...)
}

// gradBatchNormInfer serves fine-tuning with frozen statistics: y is linear in x, so plain arithmetic will do.
func gradBatchNormInfer(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	x, gamma, g := c.In[0], c.In[1], r.masked(c)
	rank := len(x.Desc().Shape)
	lift := func(v Ref) Ref { // [C] → [C 1 1], in x's type
		if t := x.Desc().DType; r.err == nil && v.Desc().DType != t {
			v = r.do(npu.Convert, npu.Attrs{"dtype": t.String()}, v)
		}
		if rank == 4 {
			v = r.do(npu.Reshape, npu.Attrs{"shape": []int{x.Desc().Shape[1], 1, 1}}, v)
		}
		return v
	}
	rstd := r.unary("rsqrt", r.affine(c.In[4], 1, c.Attrs.Float("eps", 1e-5)))
	dx := r.mul(g, lift(r.mul(gamma, rstd)))
	axes := axesBut(rank, 1)
	centred := r.binary("sub", x, lift(c.In[3]))
	dgamma := r.mul(r.sum(r.mul(g, centred), axes, false), rstd)
	out := []Ref{dx, dgamma, r.sum(g, axes, false), nil, nil}
	if c.Attrs.Bool("add") {
		out = append(out, g)
	}
	return r.done(out...)
}
