package plan

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// padsIntoConcat: pad(a) + pad(b), where both fill what the other leaves zero and together the whole: the gradient of a tensor that was cut into parts, such
// as q, k and v of one product. Three and more parts arrive as (pad + pad) + pad.
func padsIntoConcat(r *rewriter, i int, has func(string, npu.Attrs) bool) bool {
	add := &r.g.Calls[i]
	if !isPlainAdd(r.g, add) || add.In[0] == add.In[1] || !has(npu.Concat, npu.Attrs{"axis": 0}) {
		return false
	}
	axis, parts, calls := -1, []part(nil), []int(nil)
	var collect func(v ID, reader int) bool
	collect = func(v ID, reader int) bool {
		if !r.onlyReader(v, reader) {
			return false
		}
		if at, sum := r.madeBy(v, npu.Binary); isPlainAdd(r.g, sum) {
			calls = append(calls, at)
			return collect(sum.In[0], at) && collect(sum.In[1], at)
		}
		at, pad := r.madeBy(v, npu.Pad)
		if pad == nil || pad.Back != add.Back {
			return false
		}
		p, along, ok := r.part(pad)
		if !ok || axis >= 0 && along != axis {
			return false
		}
		axis, parts, calls = along, append(parts, p), append(calls, at)
		return true
	}
	if !collect(add.In[0], i) || !collect(add.In[1], i) {
		return false
	}
	slices.SortFunc(parts, func(a, b part) int { return a.begin - b.begin })
	at := 0
	for _, p := range parts {
		if p.begin != at {
			return false
		}
		at = p.end
	}
	if at != r.g.Values[add.Out[0]].Desc.Shape[axis] {
		return false
	}
	in := make([]ID, len(parts))
	for k, p := range parts {
		in[k] = p.of
	}
	add.Kind, add.Attrs, add.In = npu.Concat, npu.Attrs{"axis": axis}, in
	for _, c := range calls {
		r.dead[c] = true
	}
	return true
}

// part is what a call of pad contributes along its only padded axis: places begin to end-1.
type part struct {
	of         ID
	begin, end int
}

// part reads a pad along one axis.
func (r *rewriter) part(pad *Call) (p part, axis int, ok bool) {
	before, after := pad.Attrs.Ints("before"), pad.Attrs.Ints("after")
	axis = -1
	for a := range before {
		if before[a] == 0 && after[a] == 0 {
			continue
		}
		if axis >= 0 {
			return p, 0, false
		}
		axis = a
	}
	if axis < 0 {
		return p, 0, false
	}
	n := r.g.Values[pad.In[0]].Desc.Shape[axis]
	return part{pad.In[0], before[axis], before[axis] + n}, axis, true
}
