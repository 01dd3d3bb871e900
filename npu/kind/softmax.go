package kind

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	Register(&Kind{
		Name: npu.Softmax,
		In:   "x", Out: "y",
		Shape: rowsAlike("x"), Follows: true,
	})
	Register(&Kind{
		Name: npu.SoftmaxBwd,
		In:   "dy y", Out: "dx",
		Shape: rowsAlike("dy", "y"), Follows: true,
	})
	Register(&Kind{
		Name: npu.LogSoftmax,
		In:   "x", Out: "y",
		Shape: rowsAlike("x"), Follows: true, Wide: always,
	})
	Register(&Kind{
		Name: npu.LogSoftmaxBwd,
		In:   "dy y", Out: "dx",
		Shape: rowsAlike("dy", "y"), Follows: true, Wide: always,
	})
	Register(&Kind{
		Name: npu.CrossEntropy, Attrs: "smoothing:f ignore_index:i",
		In: "logits labels:keep", Out: "loss:full count:full,nil lse:full,nil,saved",
		Shape: inferCrossEntropy,
	})
	Register(&Kind{
		Name: npu.CrossEntropyBwd, Attrs: "smoothing:f ignore_index:i",
		In: "logits labels:keep lse:full dloss:full", Out: "dlogits",
		InPlace: "dlogits=logits", Shape: inferCrossEntropyBwd,
	})
	Register(&Kind{
		Name: npu.TopK, Attrs: "k:i ignore_index:i",
		In: "logits labels:keep", Out: "correct:full",
		Shape: inferTopK,
	})
}

// rowsAlike is alike for tensors with a last axis.
func rowsAlike(names ...string) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	rule := alike(1, names...)
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		if len(in[0].Shape) == 0 {
			return nil, fmt.Errorf("%s is a scalar, want a last axis to normalise over", names[0])
		}
		return rule(a, in)
	}
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
	c := &checker{a: a, in: in}
	c.labelled()
	c.between("smoothing", 0, 0, 1)
	if !c.ok() {
		return nil, c.err
	}
	t := fullType(in[0].DType)
	return c.done(npu.D(t), npu.D(t), npu.D(t, in[0].Shape[0]))
}

func inferCrossEntropyBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
	c := &checker{a: a, in: in}
	c.labelled()
	if k := a.Int("k", 1); c.ok() && (k < 1 || k > in[0].Shape[1]) {
		c.failf("k is %d, want 1 … %d (the classes)", k, in[0].Shape[1])
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.D(fullType(in[0].DType)))
}
