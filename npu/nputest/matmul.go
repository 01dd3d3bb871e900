package nputest

import (
	"fmt"
	"math"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

func matmulCases(s *suite) {
	sizes := [][]int{{1, 1, 1}, {1, 7, 5}, {5, 1, 9}, {9, 8, 1}, {8, 70, 50}, {9, 70, 50}, {64, 96, 32}, {53, 40, 63}, {2, 3, 4, 5}, {3, 1, 17, 8, 33}}
	for range 2 * s.n { // [… m n k]
		d := s.dims(s.r.IntN(3), 3)
		sizes = append(sizes, append(d, 1+s.r.IntN(40), 1+s.r.IntN(70), 1+s.r.IntN(90)))
	}
	for i, d := range sizes {
		for _, out := range s.results() {
			ta, tb, bias := i&1 != 0, i&2 != 0, i%3 == 0
			lead, m, n, k := d[:len(d)-3], d[len(d)-3], d[len(d)-2], d[len(d)-1]
			shape := func(r, c int, swap bool) []int {
				if swap {
					r, c = c, r
				}
				return append(slices.Clone(lead), r, c)
			}
			b := s.begin(fmt.Sprintf("%v·(%d %d %d) ta %v tb %v bias %v to %s", lead, m, n, k, ta, tb, bias, out))
			in := []int{b.in(s.act(shape(m, k, ta)...), normal), b.in(s.act(shape(k, n, tb)...), normal)}
			a := npu.Attrs{"ta": ta, "tb": tb, "bias": bias}
			if out != s.t {
				a["out"] = "f32"
			}
			if bias {
				in = append(in, b.in(s.full(n), normal))
			}
			b.call(npu.MatMul, a, in, []int{b.out(npu.D(out, shape(m, n, false)...), math.Sqrt(float64(k)))})
			b.end()
		}
	}
}
