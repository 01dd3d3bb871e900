package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// ignored is the label of rows that do not count, in all cases.
const ignored = -100

// labelled is a loss of n rows and c classes.
type labelled struct {
	n, c   int
	labels values
	size   float64 // of the logits
	what   string
}

func (s *suite) losses() []labelled {
	list := []labelled{
		{7, 33, cycle(0, 32, 5, ignored, 7, 7, 1), 1, "some ignored"},
		{1, 1, cycle(0), 1, "one class"},
		{3, 2, cycle(ignored), 1, "all ignored"},
		{5, 10, cycle(9, 0, 3), 30, "large logits"},
		{33, 311, cycle(310, 0, 17, ignored), 4, "many classes"},
	}
	for range s.n / 2 {
		n, c := 1+s.r.IntN(40), 1+s.r.IntN(60)
		list = append(list, labelled{n, c, below(c), 3, "generated"})
	}
	return list
}

// crossEntropyCases serves both kinds.
func crossEntropyCases(s *suite) {
	for i, l := range s.losses() {
		for _, smoothing := range []float64{0, 0.1} {
			b := s.begin(fmt.Sprint(l.n, "x", l.c, " ", l.what, ", smoothing ", smoothing))
			x, labels := b.in(s.act(l.n, l.c), scaled(l.size)), b.in(i32(l.n), l.labels)
			loss, count := b.out(s.full(), float64(l.n)), b.out(s.full(), 1)
			lse := b.out(s.full(l.n), 1)
			a := npu.Attrs{"smoothing": smoothing, "ignore_index": ignored}
			b.call(npu.CrossEntropy, a, []int{x, labels}, []int{loss, count, lse})
			if s.kind == npu.CrossEntropy {
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
			b.call(s.kind, a, []int{x, labels, lse, dloss}, []int{dx}, place...)
			b.c.Grads = []Grad{{dx, x, loss, dloss}}
			b.end()
		}
	}
	s.badLabel(func(b *builder, labels int) ([]int, []int) {
		in := []int{b.in(s.act(3, 4), normal), labels}
		if s.kind == npu.CrossEntropy {
			return in, []int{b.out(s.full(), 1), b.out(s.full(), 1), b.out(s.full(3), 1)}
		}
		return append(in, b.in(s.full(3), normal), b.in(s.full(), normal)), []int{b.out(s.act(3, 4), 1)}
	})
}

// badLabel adds calls whose second row has a label that is no class of 4.
func (s *suite) badLabel(args func(b *builder, labels int) (in, out []int)) {
	if s.t == npu.F64 {
		return
	}
	for _, label := range []float64{4, -1} {
		b := s.begin(fmt.Sprint("label ", label, " of 4 classes"))
		b.c.Fails = "row 1: label"
		in, out := args(b, b.in(i32(3), cycle(0, label, 1)))
		a := npu.Attrs{"ignore_index": ignored}
		if s.kind == npu.OneHot {
			a["classes"] = 4
		}
		b.call(s.kind, a, in, out)
		b.end()
	}
}

func topkCases(s *suite) {
	for i, l := range s.losses() {
		for _, k := range []int{1, min(5, l.c)} {
			b := s.begin(fmt.Sprint(l.n, "x", l.c, " ", l.what, ", k ", k))
			of := values(halves) // ties: the lower index is first
			if i%2 == 1 {
				of = normal
			}
			b.call(npu.TopK, npu.Attrs{"k": k, "ignore_index": ignored}, []int{b.in(s.act(l.n, l.c), of), b.in(i32(l.n), l.labels)}, []int{b.out(s.full(), 1)})
			b.end()
		}
	}
	s.badLabel(func(b *builder, labels int) ([]int, []int) {
		return []int{b.in(s.act(3, 4), normal), labels}, []int{b.out(s.full(), 1)}
	})
}

// linearCECases serves the three kinds. Logits reach ±12, so some rows are sure of their label.
func linearCECases(s *suite) {
	sizes := [][3]int{{1, 1, 1}, {32, 48, 16}, {33, 100, 8}, {70, 311, 24}, {5, 49, 63}, {40, 64, 33}}
	for range s.n / 2 {
		sizes = append(sizes, [3]int{1 + s.r.IntN(40), 1 + s.r.IntN(90), 1 + s.r.IntN(40)})
	}
	for i, d := range sizes {
		if s.t == npu.F64 && d[0]*d[1] > 2000 {
			continue
		}
		n, v, dim := d[0], d[1], d[2]
		b := s.begin(fmt.Sprint(n, "x", dim, " by ", v))
		size := scaled(math.Sqrt(3 / math.Sqrt(float64(dim))))
		labels := below(v)
		if i%2 == 1 {
			labels = cycle(0, float64(v-1), ignored, float64(v/2))
		}
		in := []int{b.in(s.act(n, dim), size), b.in(s.act(v, dim), size), b.in(i32(n), labels)}
		loss, count, lse := b.out(s.full(), float64(n)), b.out(s.full(), 1), b.out(s.full(n), 4)
		a := npu.Attrs{"ignore_index": ignored}
		if s.kind == npu.LinearCrossEntropy || s.kind == npu.LinearCrossEntropyBwd || s.t == npu.F64 {
			b.call(npu.LinearCrossEntropy, a, in, []int{loss, count, lse})
		}
		if s.kind == npu.LinearCrossEntropy {
			if i%3 == 2 {
				b.without(1, 2)
			}
			b.end()
			continue
		}
		dloss := b.in(s.full(), cycle(0.375))
		dx, dw := b.out(s.act(n, dim), 1), b.out(s.full(v, dim), 1)
		if s.kind == npu.LinearCrossEntropyBwd {
			b.call(s.kind, a, append(in[:3:3], lse, dloss), []int{dx, dw})
		} else {
			b.call(s.kind, a, append(in[:3:3], dloss), []int{b.out(s.full(), float64(n)), b.out(s.full(), 1), b.out(s.full(n), 4), dx, dw})
			if i%3 == 1 {
				b.without(1, 2)
			}
		}
		b.c.Grads = []Grad{{dx, in[0], loss, dloss}, {dw, in[1], loss, dloss}}
		b.end()
	}
	s.badLabel(func(b *builder, labels int) ([]int, []int) {
		in := []int{b.in(s.act(3, 2), normal), b.in(s.act(4, 2), normal), labels}
		one, rows := s.full(), s.full(3)
		switch s.kind {
		case npu.LinearCrossEntropy:
			return in, []int{b.out(one, 1), b.out(one, 1), b.out(rows, 1)}
		case npu.LinearCrossEntropyBwd:
			return append(in, b.in(rows, normal), b.in(one, normal)), []int{b.out(s.act(3, 2), 1), b.out(s.full(4, 2), 1)}
		}
		return append(in, b.in(one, normal)), []int{b.out(one, 1), b.out(one, 1), b.out(rows, 1), b.out(s.act(3, 2), 1), b.out(s.full(4, 2), 1)}
	})
}

func dropoutCases(s *suite) {
	for i, d := range s.shapes() {
		b := s.begin(d.Shape.String())
		a := npu.Attrs{"p": []float64{0.3, 0, 0.9}[i%3], "id": i}
		var place [][2]int
		if i%2 == 0 {
			place = [][2]int{{0, 0}}
		}
		b.call(npu.Dropout, a, []int{b.in(d, normal), b.in(npu.D(npu.I64), cycle(float64(42-100*i)))}, []int{b.out(d, 1)}, place...)
		b.end()
	}
	for i, d := range []npu.Desc{s.any(7, 32, 3, 5), s.act(9), s.act(6, 1031), s.act(5, 3, 2)} {
		b := s.begin(d.Shape.String() + " rows")
		a := npu.Attrs{"p": []float64{0.3, 0.5, 0.4, 0}[i], "id": i, "rows": true}
		place := [][2]int{{0, 0}}[:i%2]
		b.call(npu.Dropout, a, []int{b.in(d, normal), b.in(npu.D(npu.I64), cycle(float64(7+i)))}, []int{b.out(d, 1)}, place...)
		b.end()
	}
}
