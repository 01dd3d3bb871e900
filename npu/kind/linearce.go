package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.LinearCrossEntropy, Attrs: "ignore_index:i",
		In: "x w labels:keep", Out: "loss:full count:full,nil lse:full,nil,saved",
		Shape: inferLinearCE, Plain: true,
	})
	Register(&Kind{
		Name: npu.LinearCrossEntropyBwd, Attrs: "ignore_index:i",
		In: "x w labels:keep lse:full dloss:full", Out: "dx dw:full",
		Shape: inferLinearCEBwd, Plain: true,
	})
	Register(&Kind{
		Name: npu.LinearCrossEntropyGrad, Attrs: "ignore_index:i",
		In: "x w labels:keep dloss:full", Out: "loss:full count:full,nil lse:full,nil,saved dx dw:full",
		Shape: inferLinearCEGrad, Plain: true,
	})
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
	c := &checker{a: a, in: in}
	c.projected()
	if !c.ok() {
		return nil, c.err
	}
	t := fullType(in[0].DType)
	return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]))
}

func inferLinearCEBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
	c := &checker{a: a, in: in}
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
