package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// heads is one geometry of attention: q [B S H D], k and v [B T G D].
type heads struct {
	b, s, t, h, g, d int
	causal, seg      bool
}

func (s *suite) heads() []heads {
	list := []heads{
		{2, 70, 70, 4, 2, 32, true, false},
		{2, 70, 70, 4, 2, 32, true, true},
		{2, 70, 70, 4, 4, 32, false, true},
		{1, 1, 1, 1, 1, 1, false, false},
		{2, 3, 5, 4, 2, 2, true, false}, // fewer queries than keys
		{2, 1, 9, 6, 1, 16, true, false},
		{1, 17, 17, 3, 3, 64, false, false},
		{2, 33, 33, 8, 2, 8, true, true},
		{1, 130, 130, 2, 1, 16, true, false},
	}
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
	return fmt.Sprintf("B%d S%d T%d H%d G%d D%d causal %v seg %v", h.b, h.s, h.t, h.h, h.g, h.d, h.causal, h.seg)
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
