package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// twoSided are values around +2 and -2 in turn along each channel: every channel has a variance, and normalised values are far from 0.
func twoSided(d []int) values {
	plane := int(npu.Shape(d[2:]).Elems())
	return func(r *rand.Rand, i int) float64 {
		v := 2 + 0.3*r.NormFloat64()
		if (i/(plane*d[1])*plane+i%plane)%2 == 1 {
			v = -v
		}
		return v
	}
}

// slopes are around +1 and -1, shifts within ±0.2.
func slopes(r *rand.Rand, _ int) float64 { return float64(2*r.IntN(2)-1) * (0.7 + 0.6*r.Float64()) }
func shifts(r *rand.Rand, _ int) float64 { return 0.4*r.Float64() - 0.2 }

func (s *suite) batches() [][]int {
	list := [][]int{{2, 32, 5, 7}, {9, 20}, {3, 20, 4, 4}, {2, 1}, {2, 1, 1, 1}, {1, 3, 2, 1}, {3, 17, 1, 1}, {2, 16, 8, 8}}
	for range s.n / 2 {
		d := s.dims(4, 6)
		d[0]++ // more than one value per channel
		if s.chance(3) {
			d = d[:2]
		}
		list = append(list, d)
	}
	return list
}

// norm holds the tensors of a batch normalisation.
type norm struct {
	in  []int
	out []int
}

// batchNorm adds the forward call.
func (b *builder) batchNorm(d []int, relu, add bool) norm {
	x, v := b.any(d...), b.full(d[1])
	n := norm{in: []int{b.in(x, twoSided(d)), b.in(v, slopes), b.in(v, shifts), b.in(v, normal), b.in(v, positive)}}
	if add {
		n.in = append(n.in, b.in(x, normal))
	}
	n.out = []int{b.out(x, 1), b.out(v, 1), b.out(v, 1), b.out(v, 1), b.out(v, 1)}
	a := npu.Attrs{"eps": 1e-5, "momentum": 0.1, "relu": relu, "add": add}
	b.call(npu.BatchNorm, a, n.in, n.out, [2]int{3, 3}, [2]int{4, 4})
	return n
}

func batchNormCases(s *suite) {
	for i, d := range s.batches() {
		for bits := range 4 {
			relu, add := bits&1 != 0, bits&2 != 0
			b := s.begin(fmt.Sprint(d, " relu ", relu, " add ", add))
			if s.kind == npu.BatchNorm {
				if b.batchNorm(d, relu, add); i%4 == 3 {
					b.without(1, 2)
				}
				b.end()
				continue
			}
			x, v := s.any(d...), s.full(d[1])
			in := []int{b.in(x, normal), b.in(v, normal), b.in(v, normal), b.in(v, normal), b.in(v, positive)}
			if add {
				in = append(in, b.in(x, normal))
			}
			a := npu.Attrs{"eps": 1e-5, "relu": relu, "add": add}
			// y is gamma/√var times x: up to 1/√0.1 times a product of two normal values.
			out := []int{b.out(x, 8)}
			if bits == 1 {
				b.call(s.kind, a, in, out, [2]int{0, 0})
			} else {
				b.call(s.kind, a, in, out)
			}
			b.end()
		}
	}
}

func batchNormBwdCases(s *suite) {
	for i, d := range s.batches() {
		per := float64(npu.Shape(d).Elems()) / float64(d[1])
		for bits := range 16 {
			relu, add, sum, own := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
			if own && (!relu || add) || s.t == npu.F64 && (sum || own || i > 3) {
				continue
			}
			b := s.begin(fmt.Sprint(d, " relu ", relu, " add ", add, " sum ", sum, " own ", own))
			n := b.batchNorm(d, relu, add)
			x, v := b.c.Tensors[n.in[0]].Desc, b.c.Tensors[n.in[1]].Desc
			dy := b.in(x, normal)
			in := []int{dy, n.in[0], n.in[1], n.in[2], n.out[1], n.out[2]}
			if relu {
				in = append(in, n.out[0])
			}
			if sum {
				in = append(in, b.in(x, normal))
			}
			size := 4 * math.Sqrt(per)
			out := []int{b.out(x, size), b.out(v, size), b.out(v, size)}
			y := n.out[0]
			b.c.Grads = []Grad{{out[0], n.in[0], y, dy}, {out[1], n.in[1], y, dy}, {out[2], n.in[2], y, dy}}
			if add {
				out = append(out, b.out(x, 1))
				b.c.Grads = append(b.c.Grads, Grad{out[3], n.in[5], y, dy})
			}
			var place [][2]int
			switch i % 3 {
			case 1:
				place = [][2]int{{0, 0}}
			case 2:
				if add && sum {
					place = [][][2]int{{{3, 0}, {0, len(in) - 1}}, {{0, 0}, {3, len(in) - 1}}}[i%2]
				}
			}
			a := npu.Attrs{"eps": 1e-5, "relu": relu, "add": add, "sum": sum}
			if own {
				a["own_y"] = true
			}
			b.call(s.kind, a, in, out, place...)
			if i%4 == 3 {
				b.without(1, 2)
				b.c.Grads = append(b.c.Grads[:1:1], b.c.Grads[3:]...)
			}
			b.end()
		}
	}
}

// rows are shapes […, D] of rmsnorm, swiglu and softmax.
func (s *suite) rows() [][]int {
	list := [][]int{{2, 5, 24}, {1, 1}, {3, 1}, {1, 17}, {7, 64}, {2, 3, 4, 5}, {3, 130}}
	for range s.n / 2 {
		list = append(list, append(s.dims(1+s.r.IntN(2), 5), 1+s.r.IntN(70)))
	}
	return list
}

// rmsNormCases serves both kinds.
func rmsNormCases(s *suite) {
	for i, d := range s.rows() {
		for _, add := range []bool{false, true} {
			rmsNormCase(s, i, d, add)
		}
	}
}

func rmsNormCase(s *suite, i int, d []int, add bool) {
	b := s.begin(fmt.Sprint(d, " add ", add))
	x, w, rows := s.act(d...), s.full(d[len(d)-1]), s.full(d[:len(d)-1]...)
	in := []int{b.in(x, normal), b.in(w, normal)}
	out := []int{b.out(x, 1), b.out(rows, 1)}
	normalised := in[0]
	if add {
		in = append(in, b.in(x, normal))
		out = append(out, b.out(x, 1))
		normalised = out[2]
	}
	a := npu.Attrs{"eps": 1e-5, "add": add}
	if s.kind == npu.RMSNorm {
		place := [][][2]int{nil, {{0, 0}}, nil}[i%3]
		if add {
			place = [][][2]int{nil, {{0, 0}, {2, 2}}, {{2, 0}, {0, 2}}}[i%3]
		}
		b.call(npu.RMSNorm, a, in, out, place...)
		if i%4 == 3 {
			b.without(1)
		}
		b.end()
		return
	}
	b.call(npu.RMSNorm, a, in, out)
	dy := b.in(x, normal)
	back := []int{dy, normalised, in[1], out[1]}
	var place [][2]int
	if i%3 == 1 {
		place = [][2]int{{0, 0}}
	}
	if add {
		back = append(back, b.in(x, normal))
		if i%3 == 2 {
			place = [][2]int{{0, 4}}
		}
	}
	// rstd of a row of few elements may be large.
	dx, dw := b.out(x, 8), b.out(w, 4*math.Sqrt(float64(rows.Shape.Elems())))
	b.call(s.kind, a, back, []int{dx, dw}, place...)
	b.c.Grads = []Grad{{dw, in[1], out[0], dy}}
	if !add { // dx has dres in it
		b.c.Grads = append(b.c.Grads, Grad{dx, in[0], out[0], dy})
	}
	b.end()
}
