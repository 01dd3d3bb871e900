package nputest

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// mover adds a call of one input that moves elements of a type.
func (s *suite) mover(name string, a npu.Attrs, t npu.DType, x, y []int) {
	b := s.begin(name)
	of := values(normal)
	if !t.IsFloat() {
		of = below(1000)
	}
	b.call(s.kind, a, []int{b.in(npu.D(t, x...), of)}, []int{b.out(npu.D(t, y...), 1)})
	b.end()
}

func transposeCases(s *suite) {
	list := [][2][]int{{{2, 16, 5, 6}, {3, 0, 2, 1}}, {{3, 4}, {1, 0}}, {{7}, {0}}, {{2, 3, 4}, {0, 2, 1}}, {{1, 5, 1}, {2, 0, 1}}, {{2, 5, 3, 8}, {0, 2, 1, 3}},
		{{2, 3, 2, 3, 2}, {4, 2, 0, 1, 3}}, {{33, 70}, {1, 0}}}
	for range s.n / 2 {
		d := s.dims(1+s.r.IntN(4), 8)
		list = append(list, [2][]int{d, s.r.Perm(len(d))})
	}
	for _, p := range list {
		var y []int
		for _, a := range p[1] {
			y = append(y, p[0][a])
		}
		s.mover(fmt.Sprint(p[0], " by ", p[1]), npu.Attrs{"perm": p[1]}, s.t, p[0], y)
	}
}

func concatCases(s *suite) {
	for _, c := range []struct {
		axis int
		in   [][]int
	}{{1, [][]int{{2, 16, 5, 6}, {2, 3, 5, 6}}}, {0, [][]int{{3}, {1}, {5}}}, {2, [][]int{{2, 3, 1}, {2, 3, 1}}}, {0, [][]int{{4, 5}}},
		{1, [][]int{{1, 7}, {1, 1}, {1, 3}}},
		{3, [][]int{{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 6}, {1, 2, 3, 7}}}} {
		b := s.begin(fmt.Sprint(c.in, " along ", c.axis))
		y := append([]int{}, c.in[0]...)
		y[c.axis] = 0
		var in []int
		for _, d := range c.in {
			in = append(in, b.in(s.act(d...), normal))
			y[c.axis] += d[c.axis]
		}
		b.call(npu.Concat, npu.Attrs{"axis": c.axis}, in, []int{b.out(s.act(y...), 1)})
		b.end()
	}
}

// sliceCases serves slice and pad, which undo each other.
func sliceCases(s *suite) {
	list := [][3][]int{{{2, 16, 5, 6}, {0, 2, 1, 0}, {2, 5, 4, 6}}, {{7}, {3}, {4}}, {{4, 5}, {0, 0}, {4, 5}},
		{{3, 1, 9}, {2, 0, 8}, {3, 1, 9}}, {{5, 33}, {1, 1}, {4, 32}}}
	for range s.n / 2 {
		d := s.dims(1+s.r.IntN(4), 8)
		begin, end := make([]int, len(d)), make([]int, len(d))
		for i, n := range d {
			begin[i] = s.r.IntN(n)
			end[i] = begin[i] + 1 + s.r.IntN(n-begin[i])
		}
		list = append(list, [3][]int{d, begin, end})
	}
	for _, c := range list {
		x, begin, end := c[0], c[1], c[2]
		after, y := make([]int, len(x)), make([]int, len(x))
		for i, n := range x {
			after[i], y[i] = n-end[i], end[i]-begin[i]
		}
		name := fmt.Sprint(x, " from ", begin, " to ", end)
		if s.kind == npu.Slice {
			s.mover(name, npu.Attrs{"begin": begin, "end": end}, s.t, x, y)
		} else {
			s.mover(name, npu.Attrs{"before": begin, "after": after}, s.t, y, x)
		}
	}
}

func reshapeCases(s *suite) {
	for _, p := range [][2][]int{{{2, 16, 5, 6}, {2, 480}}, {{1}, {}}, {{3, 7}, {21}}, {{6, 5}, {5, 6}}} {
		s.mover(fmt.Sprint(p[0], " to ", p[1]), npu.Attrs{"shape": p[1]}, s.t, p[0], p[1])
	}
}

func fillCases(s *suite) {
	for _, v := range []float64{0, 1.5, -1e-3, 1} {
		for _, d := range []npu.Desc{s.act(2, 16, 5, 6), s.act(), s.full(3, 33)} {
			b := s.begin(fmt.Sprint(d, " of ", v))
			b.call(npu.Fill, npu.Attrs{"value": v}, nil, []int{b.out(d, 1)})
			b.end()
		}
	}
}

// convertCases are conversions of activations, and with float32 those of data.
func convertCases(s *suite) {
	type pair struct{ from, to npu.DType }
	list := []pair{{s.t, s.f}, {s.f, s.t}}
	if s.t == npu.F32 {
		list = []pair{{npu.F32, npu.F32}, {npu.U8, npu.F32}, {npu.I32, npu.F32}, {npu.F32, npu.I32}, {npu.I64, npu.I32}}
	}
	for _, p := range list {
		for _, d := range [][]int{{2, 16, 5, 6}, {}, {1}, {3, 7}, {1031}, {30, 40}} {
			of := below(200)
			if p.from.IsFloat() && p.to.IsFloat() {
				of = normal
			}
			b := s.begin(fmt.Sprint(p.from, d, " to ", p.to))
			b.call(npu.Convert, npu.Attrs{"dtype": p.to.String()}, []int{b.in(npu.D(p.from, d...), of)}, []int{b.out(npu.D(p.to, d...), 1)})
			b.end()
		}
	}
	if s.t == npu.BF16 || s.t == npu.F16 {
		convertEdges(s)
	}
}

// convertEdges: halfway values go to the even neighbour, what is too large to infinity; infinities and NaN stay.
func convertEdges(s *suite) {
	u := 1.0 / 256
	if s.t == npu.F16 {
		u = 1.0 / 2048
	}
	b := s.begin("halfway and beyond")
	v := []float64{1 + u, 1 + 3*u, -1 - u, 1 + u*1.01, 1 + u*0.99, inf, -inf, nan, 0, 3.4e38, -3.4e38, 65519, 65520, 65504}
	b.call(npu.Convert, npu.Attrs{"dtype": s.t.String()}, []int{b.in(s.full(len(v)), cycle(v...))}, []int{b.out(s.act(len(v)), 1)})
	b.end()
}
