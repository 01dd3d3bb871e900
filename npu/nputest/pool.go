package nputest

import (
	"fmt"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// pool is one geometry.
type pool struct {
	n, c, h, w int
	win        window
}

func (s *suite) pools(dilate bool) []pool {
	list := []pool{
		{2, 16, 12, 12, slide(3, 2, 1)}, // ResNet's
		{2, 64, 7, 9, slide(2, 2, 0)},
		{1, 5, 8, 8, slide(3, 1, 1)},
		{2, 3, 5, 4, window{[2]int{3, 2}, [2]int{2, 1}, [2]int{1, 1}, [4]int{1, 0, 1, 1}}},
		{1, 2, 3, 3, window{[2]int{2, 2}, [2]int{1, 1}, [2]int{1, 1}, [4]int{1, 0, 0, 1}}},
		{1, 1, 1, 1, slide(1, 1, 0)},
		{3, 7, 1, 6, slide(3, 2, 1)},
		{2, 32, 10, 11, slide(3, 2, 1)},
	}
	for range s.n {
		p := pool{1 + s.r.IntN(3), s.pick(1, 2, 5, 16), 1 + s.r.IntN(11), 1 + s.r.IntN(11), window{}}
		for ok := false; !ok; ok = dilate || p.win.dilation == [2]int{1, 1} {
			p.win = s.slides(p.h, p.w, 4)
			if p.emptyWindow() {
				p.win.dilation = [2]int{}
			}
		}
		if p.win.dilation != [2]int{} {
			list = append(list, p)
		}
	}
	return list
}

// emptyWindow reports whether some window covers nothing but padding: there is no maximum then.
func (p pool) emptyWindow() bool {
	oh, ow := p.win.out(p.h, p.w)
	empty := func(o, n, i int) bool {
		for k := range p.win.k[i] {
			if at := o*p.win.stride[i] + k*p.win.dilation[i] - p.win.pad[i]; at >= 0 && at < n {
				return false
			}
		}
		return true
	}
	for o := range oh {
		if empty(o, p.h, 0) {
			return true
		}
	}
	for o := range ow {
		if empty(o, p.w, 1) {
			return true
		}
	}
	return false
}

func (p pool) String() string {
	return fmt.Sprintf("%dx%dx%dx%d, kernel %v stride %v pad %v dilation %v", p.n, p.c, p.h, p.w, p.win.k, p.win.stride, p.win.pad, p.win.dilation)
}

func (p pool) attrs() npu.Attrs {
	a := p.win.attrs()
	a["kernel"] = p.win.k[:]
	return a
}

// distinct are values that differ within a plane of up to 255 elements, in every type.
func (p pool) distinct() values {
	var order []int
	plane := p.h * p.w
	return func(r *rand.Rand, i int) float64 {
		if i%plane == 0 {
			order = r.Perm(plane)
		}
		return float64(order[i%plane] - plane/2)
	}
}

// maxPoolCases serves both kinds. Without ties the index is the only right one.
func maxPoolCases(s *suite) {
	for i, p := range s.pools(true) {
		b := s.begin(p.String())
		oh, ow := p.win.out(p.h, p.w)
		x := b.in(s.any(p.n, p.c, p.h, p.w), p.distinct())
		y, idx := b.out(s.any(p.n, p.c, oh, ow), 1), b.out(npu.D(npu.I32, p.n, p.c, oh, ow).With(npu.Any), 1)
		b.call(npu.MaxPool, p.attrs(), []int{x}, []int{y, idx})
		switch {
		case s.kind == npu.MaxPoolBwd:
			dy, dx := b.in(s.any(p.n, p.c, oh, ow), normal), b.out(s.any(p.n, p.c, p.h, p.w), 2)
			b.call(s.kind, with(p.attrs(), "x_shape", []int{p.n, p.c, p.h, p.w}), []int{dy, idx}, []int{dx})
			b.c.Grads = []Grad{{dx, x, y, dy}}
		case i%2 == 1:
			b.c.Name += ", no index"
			b.without(1)
		}
		b.end()
	}
	if s.kind == npu.MaxPoolBwd && s.t != npu.F64 {
		maxPoolTies(s)
	}
}

// maxPoolTies: of equal maxima any may get the gradient, or all a share; nothing else may get any. Windows do not overlap: so the sum of dx over
// a window is dy, and so is the sum of dx·x/2 where x is 2 at the maxima and -1 elsewhere.
func maxPoolTies(s *suite) {
	b := s.begin("ties")
	p := pool{2, 5, 6, 8, slide(2, 2, 0)}
	x := b.in(s.any(p.n, p.c, p.h, p.w), cycle(2, 2, -1, 2, 2, -1, 2))
	y, idx := b.out(s.any(p.n, p.c, 3, 4), 1), b.out(npu.D(npu.I32, p.n, p.c, 3, 4).With(npu.Any), 1)
	b.c.Tensors[idx].Free = true
	b.call(npu.MaxPool, p.attrs(), []int{x}, []int{y, idx})
	dy, dx := b.in(s.any(p.n, p.c, 3, 4), halves), b.out(s.any(p.n, p.c, p.h, p.w), 1)
	b.c.Tensors[dx].Free = true
	b.call(s.kind, with(p.attrs(), "x_shape", []int{p.n, p.c, p.h, p.w}), []int{dy, idx}, []int{dx})
	a := npu.Attrs{"kernel": []int{2, 2}, "stride": []int{2, 2}}
	b.call(npu.AvgPool, a, []int{dx}, []int{b.out(s.any(p.n, p.c, 3, 4), 1)})
	prod := b.out(s.any(p.n, p.c, p.h, p.w), 1)
	b.c.Tensors[prod].Free = true
	b.call(npu.Binary, npu.Attrs{"fn": "mul"}, []int{dx, x}, []int{prod})
	b.call(npu.AvgPool, a, []int{prod}, []int{b.out(s.any(p.n, p.c, 3, 4), 1)})
	b.end()
}

// avgPoolCases serves both kinds.
func avgPoolCases(s *suite) {
	for i, p := range s.pools(false) {
		b := s.begin(fmt.Sprint(p, ", padding counts ", i%2 == 0))
		oh, ow := p.win.out(p.h, p.w)
		a := with(p.attrs(), "include_pad", i%2 == 0)
		delete(a, "dilation")
		x := b.in(s.any(p.n, p.c, p.h, p.w), normal)
		y := -1
		if s.kind == npu.AvgPool || s.t == npu.F64 {
			y = b.out(s.any(p.n, p.c, oh, ow), 1)
			b.call(npu.AvgPool, a, []int{x}, []int{y})
		}
		if s.kind == npu.AvgPoolBwd {
			dy, dx := b.in(s.any(p.n, p.c, oh, ow), normal), b.out(s.any(p.n, p.c, p.h, p.w), 1)
			b.call(s.kind, with(a, "x_shape", []int{p.n, p.c, p.h, p.w}), []int{dy}, []int{dx})
			b.c.Grads = []Grad{{dx, x, y, dy}}
		}
		b.end()
	}
}

// gapCases serves both kinds of the pooling of whole planes.
func gapCases(s *suite) {
	shapes := [][]int{{2, 16, 5, 6}, {1, 1, 1, 1}, {3, 20, 7, 7}, {2, 5, 1, 9}}
	for range s.n / 2 {
		shapes = append(shapes, s.dims(4, 9))
	}
	for _, d := range shapes {
		b := s.begin(fmt.Sprint(d))
		x := b.in(s.any(d...), normal)
		y := -1
		if s.kind == npu.GlobalAvgPool || s.t == npu.F64 {
			y = b.out(s.act(d[:2]...), 1)
			b.call(npu.GlobalAvgPool, npu.Attrs{}, []int{x}, []int{y})
		}
		if s.kind == npu.GlobalAvgPoolBwd {
			dy, dx := b.in(s.act(d[:2]...), normal), b.out(s.any(d...), 1)
			b.call(s.kind, npu.Attrs{"x_shape": d}, []int{dy}, []int{dx})
			b.c.Grads = []Grad{{dx, x, y, dy}}
		}
		b.end()
	}
}
