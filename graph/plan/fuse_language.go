package plan

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// linearCrossEntropyGrad makes loss and gradients in one go, so that the logits are computed once. The gradient of the loss must be known by then, as
// it is where the loss is the sum itself: it is an input of the program.
func linearCrossEntropyGrad(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	bwd := &r.g.Calls[i]
	if bwd.Kind != npu.LinearCrossEntropyBwd || !has(npu.LinearCrossEntropyGrad, bwd.Attrs) {
		return false
	}
	f := r.maker[bwd.In[3]]
	if f < 0 || r.g.Calls[f].Kind != npu.LinearCrossEntropy || !slices.Equal(r.g.Calls[f].In, bwd.In[:3]) || r.maker[bwd.In[4]] > f {
		return false
	}
	fwd := &r.g.Calls[f]
	fwd.Kind = npu.LinearCrossEntropyGrad
	fwd.In = append(fwd.In[:3:3], bwd.In[4])
	fwd.Out = append(fwd.Out[:3:3], bwd.Out...)
	r.dead[i] = true
	return true
}

// sumIntoRowNorm: rmsnorm(a + b) and layernorm(a + b), the sum being needed elsewhere too: the residual stream.
func sumIntoRowNorm(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	norm := &r.g.Calls[i]
	if norm.Kind != npu.RMSNorm && norm.Kind != npu.LayerNorm || norm.Attrs.Bool("add") {
		return false
	}
	a, add := r.madeBy(norm.In[0], npu.Binary)
	if !isPlainAdd(r.g, add) || add.In[0] == add.In[1] || add.Back != norm.Back || !has(norm.Kind, with(norm.Attrs, "add")) {
		return false
	}
	if slices.ContainsFunc(norm.In[1:], func(w ID) bool { return r.maker[w] > a }) {
		return false
	}
	norm.Attrs = with(norm.Attrs, "add")
	norm.In = append(append([]ID{add.In[0]}, norm.In[1:]...), add.In[1])
	norm.Out = append(slices.Clone(norm.Out), add.Out[0])
	r.move(i, a) // in the sum's position, because the sum's readers may precede the norm
	return true
}

// sumIntoRowNormBwd: rmsnorm_bwd(…) + dres and layernorm_bwd(…) + dres: the gradient of the residual stream.
func sumIntoRowNormBwd(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	add := &r.g.Calls[i]
	if !isPlainAdd(r.g, add) || add.In[0] == add.In[1] {
		return false
	}
	for side := range 2 {
		b, bwd := r.madeBy(add.In[side], npu.RMSNormBwd, npu.LayerNormBwd)
		if bwd == nil || bwd.Attrs.Bool("add") || !r.onlyReader(add.In[side], i) || !has(bwd.Kind, with(bwd.Attrs, "add")) {
			continue
		}
		early := func(d ID) bool {
			return d != None && slices.ContainsFunc(r.readers[d], func(k int) bool { return k < i })
		}
		if slices.ContainsFunc(bwd.Out[1:], early) {
			continue
		}
		in := len(bwd.In)
		bwd.Attrs = with(bwd.Attrs, "add")
		bwd.In = append(bwd.In[:in:in], add.In[1-side])
		bwd.Out = append([]ID{add.Out[0]}, bwd.Out[1:]...)
		r.move(b, i)
		return true
	}
	return false
}

// sumIntoEmbeddingBwd: a + embedding_bwd(…), for a table that is also the last layer: a few rows are added to a gradient that is there already.
func sumIntoEmbeddingBwd(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	add := &r.g.Calls[i]
	if !isPlainAdd(r.g, add) || add.In[0] == add.In[1] {
		return false
	}
	for side := range 2 {
		b, bwd := r.madeBy(add.In[side], npu.EmbeddingBwd)
		if bwd == nil || bwd.Attrs.Bool("add") || !r.onlyReader(add.In[side], i) || !has(npu.EmbeddingBwd, with(bwd.Attrs, "add")) {
			continue
		}
		bwd.Attrs = with(bwd.Attrs, "add")
		bwd.In = append(bwd.In[:2:2], add.In[1-side])
		bwd.Out = []ID{add.Out[0]}
		r.move(b, i)
		return true
	}
	return false
}
