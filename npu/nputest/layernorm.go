package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// layerNormCases serves both kinds.
func layerNormCases(s *suite) {
	for i, d := range s.rows() {
		for _, add := range []bool{false, true} {
			layerNormCase(s, i, d, add, normal)
		}
	}
	if s.t != npu.F64 { // a mean of eight deviations, as activations of a trained network may have
		layerNormCase(s, 0, []int{5, 72}, false, func(r *rand.Rand, i int) float64 { return 8 + normal(r, i) })
	}
}

func layerNormCase(s *suite, i int, d []int, add bool, of values) {
	b := s.begin(fmt.Sprint(d, " add ", add))
	x, w, rows := s.act(d...), s.full(d[len(d)-1]), s.full(d[:len(d)-1]...)
	in := []int{b.in(x, of), b.in(w, normal), b.in(w, normal)}
	out := []int{b.out(x, 1), b.out(rows, 1), b.out(rows, 1)}
	normalised := in[0]
	if add {
		in = append(in, b.in(x, normal))
		out = append(out, b.out(x, 1))
		normalised = out[3]
	}
	// A row of one element is all mean: a large eps keeps rstd, and so its rounding errors, small.
	a := npu.Attrs{"eps": 1e-5, "add": add}
	if d[len(d)-1] < 4 {
		a["eps"] = 0.1
	}
	if s.kind == npu.LayerNorm {
		place := [][][2]int{nil, {{0, 0}}, nil}[i%3]
		if add {
			place = [][][2]int{nil, {{0, 0}, {3, 3}}, {{3, 0}, {0, 3}}}[i%3]
		}
		b.call(npu.LayerNorm, a, in, out, place...)
		if i%4 == 3 {
			b.without(1, 2)
		}
		b.end()
		return
	}
	b.call(npu.LayerNorm, a, in, out)
	dy := b.in(x, normal)
	back := []int{dy, normalised, in[1], out[1], out[2]}
	var place [][2]int
	if i%3 == 1 {
		place = [][2]int{{0, 0}}
	}
	if add {
		back = append(back, b.in(x, normal))
		if i%3 == 2 {
			place = [][2]int{{0, 5}}
		}
	}
	size := 4 * math.Sqrt(float64(rows.Shape.Elems()))
	dx, dw, db := b.out(x, 8), b.out(w, size), b.out(w, size)
	b.call(s.kind, a, back, []int{dx, dw, db}, place...)
	b.c.Grads = []Grad{{dw, in[1], out[0], dy}, {db, in[2], out[0], dy}}
	if !add { // dx has dres in it
		b.c.Grads = append(b.c.Grads, Grad{dx, in[0], out[0], dy})
	}
	if i%4 == 2 {
		b.without(1, 2)
		b.c.Grads = b.c.Grads[2:]
	}
	b.end()
}
