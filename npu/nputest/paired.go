package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

func oneHotCases(s *suite) {
	for i, l := range s.losses() {
		b := s.begin(fmt.Sprint(l.n, "x", l.c, " ", l.what))
		a := npu.Attrs{"classes": l.c, "ignore_index": ignored}
		if i%2 == 1 {
			a["on"], a["off"] = 0.9+0.1/float64(l.c), 0.1/float64(l.c)
		}
		if i%3 != 0 {
			w := make([]float64, l.c)
			for j := range w {
				w[j] = 2 * s.r.Float64()
			}
			a["weights"] = w
		}
		b.call(npu.OneHot, a, []int{b.in(i32(l.n), l.labels)}, []int{b.out(s.full(l.n, l.c), 1), b.out(s.full(l.n), 1)})
		if i%3 == 2 {
			b.without(1)
		}
		b.end()
	}
	s.badLabel(func(b *builder, labels int) ([]int, []int) {
		return []int{labels}, []int{b.out(s.full(3, 4), 1), b.out(s.full(3), 1)}
	})
}

// shares are targets of rows of c elements: even rows have two classes with 0.3 and 0.7, every third one nothing, others a bit of all with a weight.
func shares(c int) values {
	return func(r *rand.Rand, i int) float64 {
		row, j := i/c, i%c
		switch {
		case row%3 == 2:
			return 0
		case row%2 == 1:
			return r.Float64()
		}
		v := 0.0
		if j == row%c {
			v += 0.3
		}
		if j == (row+1)%c {
			v += 0.7
		}
		return v
	}
}

// softCrossEntropyCases serves both kinds.
func softCrossEntropyCases(s *suite) {
	for i, l := range s.losses() {
		b := s.begin(fmt.Sprint(l.n, "x", l.c, " ", l.what))
		x, target := b.in(s.act(l.n, l.c), scaled(l.size)), b.in(s.full(l.n, l.c), shares(l.c))
		size := float64(l.n)
		if l.n > 1 {
			size *= float64(l.c)
		}
		loss, count, lse := b.out(s.full(), size), b.out(s.full(), 1), b.out(s.full(l.n), 1)
		b.call(npu.SoftCrossEntropy, npu.Attrs{}, []int{x, target}, []int{loss, count, lse})
		if s.kind == npu.SoftCrossEntropy {
			if i%3 == 2 {
				b.without(1, 2)
			}
			b.end()
			continue
		}
		dloss, dx := b.in(s.full(), cycle(0.5)), b.out(s.act(l.n, l.c), 1)
		var place [][2]int
		if i%2 == 1 {
			place = [][2]int{{0, 0}}
		}
		b.call(s.kind, npu.Attrs{}, []int{x, target, lse, dloss}, []int{dx}, place...)
		b.c.Grads = []Grad{{dx, x, loss, dloss}}
		b.end()
	}
}

// pairedCases serves mse and bce and their gradients.
func pairedCases(s *suite) {
	fwd := map[string]string{npu.BCE: npu.BCE, npu.BCEBwd: npu.BCE, npu.MSE: npu.MSE, npu.MSEBwd: npu.MSE}[s.kind]
	shapes := [][]int{{7, 33}, {1, 1}, {5}, {2, 3, 4, 5}, {3, 9000}, {33, 311}}
	for range s.n {
		shapes = append(shapes, s.dims(1+s.r.IntN(3), 40))
	}
	for i, d := range shapes {
		if s.t == npu.F64 && npu.Shape(d).Elems() > 3000 {
			continue
		}
		a, what := npu.Attrs{}, fmt.Sprint(npu.Shape(d))
		last := 1
		if len(d) > 1 {
			last = d[len(d)-1]
		}
		target, size := values(normal), 1.0
		if fwd == npu.BCE {
			target = func(r *rand.Rand, _ int) float64 { return []float64{0, 1, r.Float64()}[r.IntN(3)] }
			size = []float64{1, 30, 4}[i%3]
			switch i % 4 {
			case 1:
				a["pos_weight"], what = []float64{2.5}, what+", one pos_weight"
			case 3, 0:
				p := make([]float64, last)
				for j := range p {
					p[j] = 3 * s.r.Float64()
				}
				a["pos_weight"], what = p, what+", pos_weight"
			}
		}
		b := s.begin(what)
		in := []int{b.in(s.act(d...), scaled(size)), b.in(s.full(d...), target)}
		if i%2 == 0 {
			a["weighted"], b.c.Name = true, what+", weighted"
			in = append(in, b.in(s.full(d[0]), cycle(1, 0, 0.5)))
		}
		loss, count := b.out(s.full(), size*math.Sqrt(float64(npu.Shape(d).Elems()))), b.out(s.full(), 1)
		if s.kind == fwd || s.t == npu.F64 {
			b.call(fwd, a, in, []int{loss, count})
		}
		if s.kind == fwd {
			if i%3 == 2 {
				b.without(1)
			}
			b.end()
			continue
		}
		dloss, dx := b.in(s.full(), cycle(0.5)), b.out(s.act(d...), size)
		var place [][2]int
		if i%3 == 1 {
			place = [][2]int{{0, 0}}
		}
		b.call(s.kind, a, append(in[:len(in):len(in)], dloss), []int{dx}, place...)
		b.c.Grads = []Grad{{dx, in[0], loss, dloss}}
		b.end()
	}
}
