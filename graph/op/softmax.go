package op

import "github.com/gotrain/gotrain/npu"

func init() {
	for _, k := range [][2]string{{npu.Softmax, npu.SoftmaxBwd}, {npu.LogSoftmax, npu.LogSoftmaxBwd}} {
		bwd := k[1]
		Register(&Kind{Name: k[0], Infer: inferSoftmax, FLOPs: perElem(5), Grad: func(t Tape, c Call) ([]Ref, error) {
			r := &rule{t: t}
			return r.done(r.do(bwd, nil, c.DOut, c.Out[0]))
		}})
		Register(&Kind{Name: bwd, Infer: inferSoftmaxBwd, FLOPs: perElem(4)})
	}
	Register(&Kind{
		Name: npu.CrossEntropy, Infer: inferCrossEntropy, Grad: gradCrossEntropy, FLOPs: perElem(5),
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, false} },
		In:      []Class{Act, Keep}, Out: []Class{Full}, ZeroGrad: []int{1},
	})
	Register(&Kind{
		Name: npu.CrossEntropyBwd, Infer: inferCrossEntropyBwd, FLOPs: perElem(4),
		In: []Class{Act, Keep, Full}, Out: []Class{Act}, InPlace: [][2]int{{0, 0}},
	})
	Register(&Kind{Name: npu.TopK, Infer: inferTopK, FLOPs: perElem(1), In: []Class{Act, Keep}, Out: []Class{Full}})
}

func inferSoftmax(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x", "")
	c.floats(0)
	if c.ok() && len(in[0].Shape) == 0 {
		c.failf("x is a scalar, want a last axis to normalise over")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func inferSoftmaxBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "dy y", "")
	c.floats(0)
	c.like(1, 0, "y", "dy")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

// labelled checks logits [N C] and labels i32[N].
func (c *checker) labelled() {
	c.rank(0, "logits", 2)
	c.float(0, "logits")
	if c.ok() {
		c.typed(1, "labels", npu.I32, c.in[0].Shape[0])
	}
}

func inferCrossEntropy(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "logits labels", "smoothing:f ignore_index:i")
	c.labelled()
	c.between("smoothing", 0, 0, 1)
	if !c.ok() {
		return nil, c.err
	}
	t := fullType(in[0].DType)
	return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]))
}

func gradCrossEntropy(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.CrossEntropyBwd, c.Attrs, c.In[0], c.In[1], c.Out[2], c.DOut), nil)
}

func inferCrossEntropyBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "logits labels lse dloss", "smoothing:f ignore_index:i")
	c.labelled()
	if c.ok() {
		c.full(2, "lse", in[0].Shape[0])
		c.full(3, "dloss")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func inferTopK(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "logits labels", "k:i ignore_index:i")
	c.labelled()
	if k := a.Int("k", 1); c.ok() && (k < 1 || k > in[0].Shape[1]) {
		c.failf("k is %d, want 1 … %d (the classes)", k, in[0].Shape[1])
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.D(fullType(in[0].DType)))
}
