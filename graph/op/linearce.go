package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.LinearCrossEntropy, Infer: inferLinearCE, Grad: gradLinearCE, FLOPs: logitFLOPs(1),
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, true, false} },
		In:      []Class{Act, Act, Keep}, Out: []Class{Full}, ZeroGrad: []int{1},
	})
	Register(&Kind{
		Name: npu.LinearCrossEntropyBwd, Infer: inferLinearCEBwd, FLOPs: logitFLOPs(3),
		In: []Class{Act, Act, Keep, Full}, Out: []Class{Act, Full},
	})
	Register(&Kind{
		Name: npu.LinearCrossEntropyGrad, Infer: inferLinearCEGrad, FLOPs: logitFLOPs(3),
		In: []Class{Act, Act, Keep, Full}, Out: []Class{Full, Full, Full, Act, Full},
	})
}

// logitFLOPs counts products of N×V×D, and what is done to each logit.
func logitFLOPs(products int64) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		x, v := o.In[0].Shape, int64(o.In[1].Shape[0])
		return 2*products*x.Elems()*v + 5*int64(x[0])*v
	}
}

// projected checks x [N D], w [V D] and labels i32[N].
func (c *checker) projected() {
	c.rank(0, "x", 2)
	c.rank(1, "w", 2)
	c.float(0, "x")
	if !c.ok() {
		return
	}
	if c.in[1].DType != c.in[0].DType || c.in[1].Shape[1] != c.in[0].Shape[1] {
		c.failf("x is %s, w is %s; want [N D] and [V D] of one type", c.in[0], c.in[1])
	}
	c.typed(2, "labels", npu.I32, c.in[0].Shape[0])
}

func inferLinearCE(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x w labels", "ignore_index:i")
	c.projected()
	if !c.ok() {
		return nil, c.err
	}
	t := fullType(in[0].DType)
	return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]))
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

func inferLinearCEBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x w labels lse dloss", "ignore_index:i")
	c.projected()
	if c.ok() {
		c.full(3, "lse", in[0].Shape[0])
		c.full(4, "dloss")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0], npu.D(fullType(in[0].DType), in[1].Shape...))
}

func inferLinearCEGrad(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x w labels dloss", "ignore_index:i")
	c.projected()
	if c.ok() {
		c.full(3, "dloss")
	}
	if !c.ok() {
		return nil, c.err
	}
	t := fullType(in[0].DType)
	return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]), in[0], npu.D(t, in[1].Shape...))
}
