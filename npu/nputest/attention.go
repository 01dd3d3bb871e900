package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// heads is one geometry of attention: q [B S H D], k and v [B T G D].
type heads struct {
	b, s, t, h, g, d int
	causal, seg      bool
	keys             bool
	mask             []int // batch and heads of a mask: 1 or all; nil: none
}

func (s *suite) heads() []heads {
	list := []heads{
		{2, 70, 70, 4, 2, 32, true, false, false, nil},
		{2, 70, 70, 4, 2, 32, true, true, false, nil},
		{2, 70, 70, 4, 4, 32, false, true, false, nil},
		{1, 1, 1, 1, 1, 1, false, false, false, nil},
		{2, 3, 5, 4, 2, 2, true, false, false, nil}, // fewer queries than keys
		{2, 1, 9, 6, 1, 16, true, false, false, nil},
		{1, 17, 17, 3, 3, 64, false, false, false, nil},
		{2, 33, 33, 8, 2, 8, true, true, false, nil},
		{1, 130, 130, 2, 1, 16, true, false, false, nil},
	}
	list = append(list,
		heads{b: 2, s: 70, t: 70, h: 4, g: 2, d: 32, keys: true},
		heads{b: 2, s: 5, t: 200, h: 2, g: 2, d: 8, keys: true},
		heads{b: 2, s: 40, t: 33, h: 4, g: 2, d: 16, mask: []int{1, 1}},
		heads{b: 2, s: 17, t: 20, h: 2, g: 1, d: 8, causal: true, mask: []int{2, 1}},
		heads{b: 2, s: 7, t: 9, h: 2, g: 2, d: 4, keys: true, mask: []int{1, 2}},
		heads{b: 2, s: 3, t: 3, h: 2, g: 1, d: 4, causal: true, keys: true, mask: []int{2, 2}})
	for range s.n / 2 {
		h := heads{b: s.pick(1, 2), t: 1 + s.r.IntN(60), g: s.pick(1, 2, 3), d: s.pick(4, 7, 8, 16, 33), causal: s.chance(2), seg: s.chance(3)}
		h.h, h.s = h.g*s.pick(1, 1, 2, 4), h.t
		if !h.seg {
			h.s = 1 + s.r.IntN(h.t)
		}
		list = append(list, h)
	}
	return list
}

func (h heads) String() string {
	return fmt.Sprintf("B%d S%d T%d H%d G%d D%d causal %v seg %v keys %v mask %v", h.b, h.s, h.t, h.h, h.g, h.d, h.causal, h.seg, h.keys, h.mask)
}

// attentionCases serves both kinds.
func attentionCases(s *suite) {
	for i, h := range s.heads() {
		if s.t == npu.F64 && h.b*h.s*h.t*h.h > 2000 {
			continue
		}
		b := s.begin(h.String())
		q, k := s.act(h.b, h.s, h.h, h.d), s.act(h.b, h.t, h.g, h.d)
		in := []int{b.in(q, normal), b.in(k, normal), b.in(k, normal)}
		var seg []int
		if h.seg { // ids that are skipped, and one that comes back
			ids := i32(h.b, h.s)
			seg = []int{b.in(ids, cycle(7, 7, 7, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9))}
		}
		a := npu.Attrs{"scale": 1 / math.Sqrt(float64(h.d)), "causal": h.causal, "seg": h.seg}
		seg = append(seg, b.masks(a, h)...)
		o, lse := b.out(q, 1), b.out(s.full(h.b, h.h, h.s), 1)
		b.call(npu.Attention, a, append(in[:3:3], seg...), []int{o, lse})
		if s.kind == npu.Attention {
			if i%3 == 2 {
				b.without(1)
			}
			b.end()
			continue
		}
		do, out := b.in(q, normal), []int{b.out(q, 4), b.out(k, 8), b.out(k, 8)}
		b.call(s.kind, a, append([]int{do, in[0], in[1], in[2], o, lse}, seg...), out)
		for j, g := range out {
			b.c.Grads = append(b.c.Grads, Grad{g, in[j], o, do})
		}
		b.end()
	}
}

// masks adds the masks by keys and by pairs. Every query sees the first key, because devices differ in what they give to one that sees none.
func (b *builder) masks(a npu.Attrs, h heads) (in []int) {
	if h.keys { // the rows of a batch differ
		a["keys"] = true
		in = append(in, b.in(i32(h.b, h.t), func(_ *rand.Rand, i int) float64 {
			return float64(boolInt(i%h.t == 0 || i%h.t < h.t/(1+i/h.t) && i%5 != 3))
		}))
	}
	if h.mask != nil {
		a["mask"] = true
		d := i32(h.mask[0], h.mask[1], h.s, h.t)
		in = append(in, b.in(d, func(r *rand.Rand, i int) float64 { return float64(boolInt(i%h.t == 0 || r.IntN(3) > 0)) }))
	}
	return in
}

func cachedCases(s *suite) {
	for _, t := range s.results() {
		for _, h := range []heads{
			{b: 2, s: 1, t: 50, h: 4, g: 2, d: 32},
			{b: 1, s: 1, t: 1, h: 1, g: 1, d: 8},
			{b: 3, s: 4, t: 20, h: 6, g: 3, d: 16},
			{b: 1, s: 3, t: 33, h: 2, g: 1, d: 5},
		} {
			b := s.begin(fmt.Sprint(h, " of ", t))
			q, k := s.act(h.b, h.s, h.h, h.d), npu.D(t, h.b, h.t, h.g, h.d)
			pos := b.in(i32(h.b, h.s), cycle(float64(h.t-1), 7, -1, 0, float64(h.t/2))) // -1 sees nothing
			b.call(npu.AttentionCached, npu.Attrs{"scale": 1 / math.Sqrt(float64(h.d))}, []int{b.in(q, normal), b.in(k, normal), b.in(k, normal), pos},
				[]int{b.out(q, 1)})
			b.end()
		}
	}
}

func cacheWriteCases(s *suite) {
	for _, c := range []struct {
		b, t, s, g, d int
		pos           values
	}{{2, 50, 1, 2, 32, cycle(3, -1)}, {1, 3, 2, 1, 1, cycle(-1, 1)}, {2, 9, 3, 3, 5, cycle(8, 0, 4)}, {1, 1, 1, 1, 7, cycle(0)}, {1, 4, 2, 1, 3, cycle(-5, -1)}} {
		b := s.begin(fmt.Sprint(c.b, c.t, c.s, c.g, c.d))
		cache := s.full(c.b, c.t, c.g, c.d)
		in := []int{b.in(cache, normal), b.in(s.act(c.b, c.s, c.g, c.d), normal), b.in(i32(c.b, c.s), c.pos)}
		b.call(npu.CacheWrite, npu.Attrs{}, in, []int{b.out(cache, 1)}, [2]int{0, 0})
		b.end()
	}
	if s.t == npu.F64 {
		return
	}
	b := s.begin("position beyond the cache")
	b.c.Fails = "pos[0 1]: position 3"
	cache := s.full(1, 3, 1, 2)
	in := []int{b.in(cache, normal), b.in(s.act(1, 2, 1, 2), normal), b.in(i32(1, 2), cycle(0, 3))}
	b.call(npu.CacheWrite, npu.Attrs{}, in, []int{b.out(cache, 1)}, [2]int{0, 0})
	b.end()
}
