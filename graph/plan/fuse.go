package plan

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Fuse merges calls where has says that the target has a kernel for the whole. Numbers change by rounding only.
// Rules run to a fixed point, in this order for each call: forward first, so that the backward rules can see what was fused.
func Fuse(g *Graph, has func(kind string, attrs npu.Attrs) bool) {
	r := newRewriter(g)
	rules := []func(*rewriter, int, func(string, npu.Attrs) bool) bool{
		reluIntoNorm, normAddRelu, reluIntoProducer, reluBwdIntoNormBwd, sumIntoNormBwd,
		linearCrossEntropyGrad, sumIntoRowNorm, sumIntoRowNormBwd, sumIntoEmbeddingBwd, padsIntoConcat,
	}
	for _, rule := range rules {
		for i := range g.Calls {
			if !r.dead[i] && rule(r, i, has) {
				r.index()
			}
		}
	}
	r.finish()
}

func with(a npu.Attrs, keys ...string) npu.Attrs {
	a = a.Clone()
	for _, k := range keys {
		a[k] = true
	}
	return a
}

// reluIntoNorm: relu(batchnorm(x)).
func reluIntoNorm(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	relu := &r.g.Calls[i]
	if relu.Kind != npu.Relu {
		return false
	}
	_, norm := r.madeBy(relu.In[0], npu.BatchNorm, npu.BatchNormInfer)
	if norm == nil || norm.Attrs.Bool("relu") || !r.onlyReader(relu.In[0], i) || !has(norm.Kind, with(norm.Attrs, "relu")) {
		return false
	}
	norm.Attrs = with(norm.Attrs, "relu")
	norm.Out[0] = relu.Out[0]
	r.dead[i] = true
	return true
}

// normAddRelu: relu(batchnorm(x) + res). Where both sides are norms, the later one takes the sum in.
func normAddRelu(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	relu := &r.g.Calls[i]
	if relu.Kind != npu.Relu || !r.onlyReader(relu.In[0], i) {
		return false
	}
	a, add := r.madeBy(relu.In[0], npu.Binary)
	if !isPlainAdd(r.g, add) {
		return false
	}
	best, res := -1, None
	for side := range 2 {
		v := add.In[side]
		n, norm := r.madeBy(v, npu.BatchNorm, npu.BatchNormInfer)
		if norm == nil || norm.Attrs.Bool("relu") || norm.Attrs.Bool("add") || !r.onlyReader(v, a) || n < best || !has(norm.Kind, with(norm.Attrs, "add", "relu")) {
			continue
		}
		best, res = n, add.In[1-side]
	}
	if best < 0 {
		return false
	}
	norm := &r.g.Calls[best]
	norm.Attrs = with(norm.Attrs, "add", "relu")
	norm.In = append(norm.In[:len(norm.In):len(norm.In)], res)
	norm.Out[0] = relu.Out[0]
	r.dead[a] = true
	// The residual may be made after the norm, so the fused call stands where the relu stood.
	r.move(best, i)
	return true
}

// reluIntoProducer: relu(conv(x)), relu(a + b).
func reluIntoProducer(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	relu := &r.g.Calls[i]
	if relu.Kind != npu.Relu || !r.onlyReader(relu.In[0], i) {
		return false
	}
	_, c := r.madeBy(relu.In[0], npu.Conv2D, npu.Binary)
	if c == nil || c.Attrs.Bool("relu") || (c.Kind == npu.Binary && !isPlainAdd(r.g, c)) || !has(c.Kind, with(c.Attrs, "relu")) {
		return false
	}
	c.Attrs = with(c.Attrs, "relu")
	c.Out[0] = relu.Out[0]
	r.dead[i] = true
	return true
}

// reluBwdIntoNormBwd: batchnorm_bwd(relu_bwd(dy, y)), where y came from a norm that took the relu in. Where the masked
// gradient has other readers (the residual branch), the fused op gives it out as dres.
func reluBwdIntoNormBwd(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	rb := &r.g.Calls[i]
	if rb.Kind != npu.ReluBwd {
		return false
	}
	g := rb.Out[0]
	_, norm := r.madeBy(rb.In[1], npu.BatchNorm)
	if norm == nil || !norm.Attrs.Bool("relu") || r.pinned[g] {
		return false
	}
	for _, b := range r.readers[g] {
		bwd := &r.g.Calls[b]
		if bwd.Kind != npu.BatchNormBwd || bwd.In[0] != g || bwd.In[4] != norm.Out[1] || bwd.Attrs.Bool("relu") {
			continue
		}
		shared := !r.onlyReader(g, b)
		flags := []string{"relu"}
		switch {
		case shared:
			flags = append(flags, "add")
		case !norm.Attrs.Bool("add") && slices.Equal(bwd.In[1:4], norm.In[:3]):
			flags = append(flags, "own_y")
		}
		if !has(npu.BatchNormBwd, with(bwd.Attrs, flags...)) {
			return false
		}
		bwd.Attrs = with(bwd.Attrs, flags...)
		bwd.In = append([]ID{rb.In[0]}, bwd.In[1:]...)
		bwd.In = append(bwd.In, rb.In[1])
		if !shared {
			r.dead[i] = true
			return true
		}
		dres := r.g.Add(Value{Name: r.g.Values[g].Name, Desc: r.g.Values[g].Desc})
		bwd.Out = append(append([]ID{}, bwd.Out[:3]...), dres)
		r.replace(g, dres, b)
		// The residual's readers may stand before the norm's backward: the fused call takes the place of relu_bwd.
		r.move(b, i)
		return true
	}
	return false
}

// sumIntoNormBwd: batchnorm_bwd(a + b): the sum of two gradients is done while they are read.
func sumIntoNormBwd(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	bwd := &r.g.Calls[i]
	if bwd.Kind != npu.BatchNormBwd || bwd.Attrs.Bool("sum") {
		return false
	}
	a, add := r.madeBy(bwd.In[0], npu.Binary)
	if !isPlainAdd(r.g, add) || add.In[0] == add.In[1] || !r.onlyReader(bwd.In[0], i) || !has(npu.BatchNormBwd, with(bwd.Attrs, "sum")) {
		return false
	}
	bwd.Attrs = with(bwd.Attrs, "sum")
	in := append([]ID{add.In[0]}, bwd.In[1:]...)
	bwd.In = append(in, add.In[1])
	r.dead[a] = true
	return true
}

// isPlainAdd says whether the call is a + b of two tensors of one shape.
func isPlainAdd(g *Graph, c *Call) bool {
	return c != nil && c.Kind == npu.Binary && c.Attrs.Str("fn") == "add" && !c.Attrs.Bool("relu") &&
		g.Values[c.In[0]].Desc.Shape.Equal(g.Values[c.In[1]].Desc.Shape)
}
