package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

func embeddingCases(s *suite) {
	list := []struct {
		ids  []int
		v, d int
		id   values
	}{
		{[]int{2, 5}, 11, 24, cycle(0, 10, 3, 3, 7)}, {[]int{1}, 1, 1, cycle(0)}, {[]int{7}, 3, 5, cycle(2)},
		{[]int{2, 3, 2}, 50, 33, below(50)}, {[]int{64}, 5, 8, below(5)},
	}
	for i, c := range list {
		b := s.begin(fmt.Sprint(c.ids, " of ", c.v, "x", c.d))
		ids := b.in(i32(c.ids...), c.id)
		y := append(append([]int{}, c.ids...), c.d)
		if s.kind == npu.Embedding {
			b.call(npu.Embedding, npu.Attrs{}, []int{ids, b.in(s.act(c.v, c.d), normal)}, []int{b.out(s.act(y...), 1)})
			b.end()
			continue
		}
		w, out := b.in(s.full(c.v, c.d), normal), -1
		if s.t == npu.F64 {
			out = b.out(s.act(y...), 1)
			b.call(npu.Embedding, npu.Attrs{}, []int{ids, w}, []int{out})
		}
		dy, dw := b.in(s.act(y...), normal), b.out(s.full(c.v, c.d), math.Sqrt(float64(npu.Shape(c.ids).Elems())))
		if i%2 == 1 && s.t != npu.F64 {
			b.call(s.kind, npu.Attrs{"rows": c.v, "add": true}, []int{dy, ids, w}, []int{dw}, [2]int{0, 2})
		} else {
			b.call(s.kind, npu.Attrs{"rows": c.v}, []int{dy, ids}, []int{dw})
			b.c.Grads = []Grad{{dw, w, out, dy}}
		}
		b.end()
	}
	if s.t == npu.F64 {
		return
	}
	b := s.begin("id beyond the table")
	b.c.Fails = "ids[1 0]: id 5"
	ids := b.in(i32(2, 2), cycle(0, 1, 5, 4))
	if s.kind == npu.Embedding {
		b.call(s.kind, npu.Attrs{}, []int{ids, b.in(s.act(5, 3), normal)}, []int{b.out(s.act(2, 2, 3), 1)})
	} else {
		b.call(s.kind, npu.Attrs{"rows": 5}, []int{b.in(s.act(2, 2, 3), normal), ids}, []int{b.out(s.full(5, 3), 1)})
	}
	b.end()
}

// swigluCases serves both kinds.
func swigluCases(s *suite) {
	for i, d := range s.rows() {
		b := s.begin(fmt.Sprint(d))
		x := s.act(d...)
		gate, up := b.in(x, scaled(2)), b.in(x, normal)
		if s.kind == npu.SwiGLU {
			b.call(npu.SwiGLU, npu.Attrs{}, []int{gate, up}, []int{b.out(x, 1)}, [][][2]int{nil, {{0, 0}}, {{0, 1}}}[i%3]...)
			b.end()
			continue
		}
		y := -1
		if s.t == npu.F64 {
			y = b.out(x, 1)
			b.call(npu.SwiGLU, npu.Attrs{}, []int{gate, up}, []int{y})
		}
		dy, dg, du := b.in(x, normal), b.out(x, 4), b.out(x, 4)
		b.call(s.kind, npu.Attrs{}, []int{dy, gate, up}, []int{dg, du}, [][][2]int{nil, {{0, 1}, {1, 2}}, {{0, 0}}, {{1, 0}}}[i%4]...)
		b.c.Grads = []Grad{{dg, gate, y, dy}, {du, up, y, dy}}
		b.end()
	}
}

func ropeCases(s *suite) {
	llama3 := npu.Attrs{"factor": 8.0, "low": 1.0, "high": 4.0, "original": 64}
	for i, d := range [][]int{{2, 5, 3, 8}, {1, 1, 1, 2}, {2, 7, 4, 16}, {1, 33, 1, 6}, {3, 2, 5, 64}} {
		for bits := range 8 {
			if i > 1 && (i+bits)%3 != 0 {
				continue
			}
			pairs, inverse, pos := []string{"half", "adjacent"}[bits&1], bits&2 != 0, bits&4 != 0
			a := npu.Attrs{"theta": 1e4, "pairs": pairs, "inverse": inverse, "pos": pos}
			if i%2 == 0 {
				for k, v := range llama3 {
					a[k] = v
				}
			}
			b := s.begin(fmt.Sprint(d, " ", pairs, " inverse ", inverse, " pos ", pos, " scaled ", i%2 == 0))
			in := []int{b.in(s.any(d...), normal)}
			if pos {
				in = append(in, b.in(i32(d[0], d[1]), cycle(3, 400, 0, 7, 8)))
			}
			var place [][2]int
			if bits%3 == 0 {
				place = [][2]int{{0, 0}}
			}
			y := b.out(s.any(d...), 1)
			b.call(npu.Rope, a, in, []int{y}, place...)
			if s.t == npu.F64 { // turning back is the gradient
				dy, dx := b.in(s.any(d...), normal), b.out(s.any(d...), 1)
				b.call(npu.Rope, with(a, "inverse", !inverse), append([]int{dy}, in[1:]...), []int{dx})
				b.c.Grads = []Grad{{dx, in[0], y, dy}}
			}
			b.end()
		}
	}
}
