package plan

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// TestCacheIsWrittenInPlace: a cache is one state before and after, stays float32 in a bfloat16 plan, and is read after it was written.
func TestCacheIsWrittenInPlace(t *testing.T) {
	s := &sketch{t: t}
	heads := npu.D(npu.F32, 1, 3, 2, 4)
	q, k, v := s.value("q", Input, heads), s.value("k", Input, heads), s.value("v", Input, heads)
	pos := s.value("pos", Input, npu.D(npu.I32, 1, 3))
	keys, vals := s.value("keys", State, npu.D(npu.F32, 1, 5, 2, 4)), s.value("values", State, npu.D(npu.F32, 1, 5, 2, 4))
	a := npu.Attrs{"scale": 0.5}
	o := s.call(false, "attn", npu.AttentionCached, a, q, s.call(false, "attn", npu.CacheWrite, nil, keys, k, pos)[0], s.call(false, "attn",
		npu.CacheWrite, nil, vals, v, pos)[0], pos)[0]
	s.g.Outputs = []Output{{Name: "o", Value: o}}

	var got []map[string][]float32
	for _, opts := range []Options{{}, {Compute: npu.BF16}} {
		p, err := Build(&s.g, target(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		written := map[ID]bool{}
		for _, st := range p.Steps {
			switch st.Op.Kind {
			case npu.CacheWrite:
				if p.Memory(st.In[0]) != p.Memory(st.Out[0]) || st.Op.In[0].DType != npu.F32 {
					t.Errorf("%s from %v to %v", st.Op, st.In, st.Out)
				}
				written[p.Memory(st.Out[0])] = true
			case npu.AttentionCached:
				if !written[p.Memory(st.In[1])] || !written[p.Memory(st.In[2])] || st.Op.In[1].DType != npu.F32 {
					t.Errorf("%s reads %v, written before are %v", st.Op, st.In, written)
				}
			}
		}
		if len(written) != 2 || len(p.States) != 2 {
			t.Errorf("%d caches written, %d states", len(written), len(p.States))
		}
		got = append(got, execute(t, p))
	}
	compare(t, got[0], got[1], 2e-2) // q, k and v are rounded to 8 bits
}
