package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// lengths are of flat memory.
var lengths = []int{1003, 1, 64, 4097}

func sgdCases(s *suite) {
	for i, n := range lengths {
		for bits := range 16 {
			if i > 0 && (i+bits)%4 != 0 {
				continue
			}
			nesterov, decoupled, has, first := bits&1 != 0, bits&2 != 0, bits&4 == 0, bits&8 != 0
			if nesterov && !has {
				continue
			}
			b := s.begin(fmt.Sprint(n, " nesterov ", nesterov, " decoupled ", decoupled, " momentum ", has, " first ", first))
			v := s.full(n)
			hyper := b.in(s.full(8), cycle(0.1, 0.5, 0.9, 1e-2, 0.1, float64(boolInt(first)), 0, 0))
			in, place := []int{hyper, b.in(v, normal), b.in(v, normal)}, [][2]int{{0, 1}}
			out := []int{b.out(v, 1)}
			if has {
				in, out, place = append(in, b.in(v, normal)), append(out, b.out(v, 1)), append(place, [2]int{1, 3})
			}
			b.call(npu.SGD, npu.Attrs{"nesterov": nesterov, "decoupled": decoupled, "has_momentum": has}, in, out, place...)
			b.end()
		}
	}
}

func adamWCases(s *suite) {
	for _, n := range lengths {
		for _, coupled := range []bool{false, true} {
			for _, first := range []bool{false, true} {
				b := s.begin(fmt.Sprint(n, " coupled ", coupled, " first ", first))
				// 1-beta^t agrees with t, because devices use the one or the other.
				hyper, m, v := cycle(1e-3, 0.5, 0.9, 0.999, 1e-8, 1e-2, 0.19, 0.001999, 2), values(normal), values(positive)
				if first { // the moments are zero
					hyper, m, v = cycle(1e-3, 1, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1), cycle(0), cycle(0)
				}
				d := s.full(n)
				in := []int{b.in(s.full(9), hyper), b.in(d, normal), b.in(d, normal), b.in(d, m), b.in(d, v)}
				b.call(npu.AdamW, npu.Attrs{"coupled": coupled}, in, []int{b.out(d, 1), b.out(d, 1), b.out(d, 1)}, [2]int{0, 1}, [2]int{1, 3}, [2]int{2, 4})
				b.end()
			}
		}
	}
}

func sumSqCases(s *suite) {
	for _, n := range lengths {
		b := s.begin(fmt.Sprint(n))
		sum := b.tensor(Tensor{Desc: npu.D(npu.F64, 2), Values: []float64{10, 3}, Size: math.Sqrt(float64(n))})
		b.call(npu.SumSq, npu.Attrs{}, []int{b.in(s.full(n), normal)}, []int{sum})
		b.end()
	}
	b := s.begin("not finite") // the count is right; the sum is anything
	sum := b.tensor(Tensor{Desc: npu.D(npu.F64, 2), Values: []float64{0, 1}, Only: []int{1}})
	b.call(npu.SumSq, npu.Attrs{}, []int{b.in(s.full(70), cycle(1, inf, 2, nan, -inf, 3, 4))}, []int{sum})
	b.end()
}

func larsCases(s *suite) {
	for i, n := range lengths {
		for bits := range 8 {
			skip, first, nesterov := bits&1 != 0, bits&2 != 0, bits&4 != 0
			if i > 0 && (i+bits)%4 != 0 {
				continue
			}
			b := s.begin(fmt.Sprint(n, " skip ", skip, " first ", first, " nesterov ", nesterov))
			hyper := cycle(0.1, 0.5, 0.9, 1e-4, 1e-2, 1e-9, float64(boolInt(first)), float64(boolInt(nesterov)))
			v, two := s.full(n), npu.D(npu.F64, 2)
			norm := values(cycle(1000, 0))
			if bits == 4 {
				norm = cycle(0, 0) // no gradient: the rate is not adapted
			}
			in := []int{b.in(s.full(8), hyper), b.in(v, normal), b.in(v, normal), b.in(v, normal), b.in(two, cycle(900, 0)), b.in(two, norm)}
			b.call(npu.LARS, npu.Attrs{"skip": skip}, in, []int{b.out(v, 1), b.out(v, 1)}, [2]int{0, 1}, [2]int{1, 3})
			b.end()
		}
	}
}

func scaleCases(s *suite) {
	for i, n := range lengths {
		b := s.begin(fmt.Sprint(n))
		in := []int{b.in(s.full(1), cycle(0.25*float64(i))), b.in(s.full(n), normal)}
		b.call(npu.Scale, npu.Attrs{}, in, []int{b.out(s.full(n), 1)}, [2]int{0, 1})
		b.end()
	}
}

func emaCases(s *suite) {
	for _, n := range lengths {
		for _, decay := range []float64{0, 0.5, 0.9999} {
			b := s.begin(fmt.Sprint(n, " decay ", decay))
			v := s.full(n)
			in := []int{b.in(s.full(2), cycle(decay, 1-decay)), b.in(v, normal), b.in(v, normal)}
			b.call(npu.EMA, npu.Attrs{}, in, []int{b.out(v, 1)}, [2]int{0, 1})
			b.end()
		}
	}
}

// lambCases: the moments alone, and both ops one after the other, where each tensor has its own trust.
func lambCases(s *suite) {
	for i, n := range lengths {
		for j, size := range []float64{1, 20, 0} { // of the weights: the trust is below 1, above 1, and 1
			b := s.begin(fmt.Sprint(n, " weights of ", size, " clip ", j == i%2))
			hyper := b.in(s.full(9), cycle(1e-2, 0.5, 0.9, 0.999, 1e-6, 1e-2, 0.19, 0.001999, 2))
			w := func(r *rand.Rand, i int) float64 { return size * normal(r, i) }
			v, two := s.full(n), npu.D(npu.F64, 2)
			in := []int{hyper, b.in(v, w), b.in(v, normal), b.in(v, normal), b.in(v, positive)}
			m, va := b.out(v, 1), b.out(v, 1)
			sums := b.out(two, max(float64(n)*(1+size*size), 1))
			b.call(npu.LAMBMoments, npu.Attrs{}, in, []int{sums, m, va}, [2]int{1, 3}, [2]int{2, 4})
			if s.kind == npu.LAMB {
				b.call(npu.LAMB, npu.Attrs{"clip": j == i%2}, []int{hyper, in[1], m, va, sums}, []int{b.out(v, max(size, 1))}, [2]int{0, 1})
			}
			b.end()
		}
	}
}
