package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// shapes are of tensors that are handled element by element.
func (s *suite) shapes() []npu.Desc {
	list := []npu.Desc{s.any(2, 32, 5, 7), s.act(3, 17), s.act(), s.act(1), s.act(2, 3, 4, 5, 2), s.act(1031)}
	for range s.n / 2 {
		list = append(list, s.act(s.dims(1+s.r.IntN(4), 7)...))
	}
	return list
}

func reluCases(s *suite) {
	for i, d := range s.shapes() {
		b := s.begin(d.Shape.String())
		of := values(halves) // zeros among them
		if s.t == npu.F64 {
			of = normal // which have no gradient
		}
		x := b.in(d, of)
		y := b.out(d, 1)
		var place [][2]int
		if i%2 == 0 {
			place = [][2]int{{0, 0}}
		}
		if s.kind == npu.Relu {
			b.call(npu.Relu, npu.Attrs{}, []int{x}, []int{y}, place...)
			b.end()
			continue
		}
		b.call(npu.Relu, npu.Attrs{}, []int{x}, []int{y})
		dy, dx := b.in(d, normal), b.out(d, 1)
		b.call(s.kind, npu.Attrs{}, []int{dy, y}, []int{dx}, place...)
		b.c.Grads = []Grad{{dx, x, y, dy}}
		b.end()
	}
}

// unaryFns are the functions of Unary, with the values that they take.
var unaryFns = []struct {
	fn string
	of values
}{
	{"neg", normal}, {"exp", normal}, {"log", positive}, {"sqrt", positive}, {"rsqrt", positive}, {"square", normal}, {"abs", normal},
	{"recip", positive}, {"tanh", scaled(2)}, {"sigmoid", scaled(4)}, {"silu", scaled(4)}, {"sign", halves}, {"affine", normal},
}

func unaryCases(s *suite) {
	for i, d := range s.shapes() {
		for j, u := range unaryFns {
			if i > 1 && (i+j)%3 != 0 {
				continue
			}
			a := npu.Attrs{"fn": u.fn}
			if u.fn == "affine" {
				a["alpha"], a["beta"] = 2.0, -0.5
			}
			b := s.begin(u.fn + " " + d.Shape.String())
			var place [][2]int
			if (i+j)%2 == 0 {
				place = [][2]int{{0, 0}}
			}
			b.call(npu.Unary, a, []int{b.in(d, u.of)}, []int{b.out(d, 1)}, place...)
			b.end()
		}
	}
}

// geluCases serves both kinds.
func geluCases(s *suite) {
	for i, d := range s.shapes() {
		for j, form := range []string{"none", "tanh"} {
			a := npu.Attrs{"approximate": form}
			b := s.begin(form + " " + d.Shape.String())
			x := b.in(d, scaled(2))
			if s.kind == npu.Gelu {
				b.call(npu.Gelu, a, []int{x}, []int{b.out(d, 1)}, [][][2]int{nil, {{0, 0}}}[(i+j)%2]...)
				b.end()
				continue
			}
			y := -1
			if s.t == npu.F64 {
				y = b.out(d, 1)
				b.call(npu.Gelu, a, []int{x}, []int{y})
			}
			dy, dx := b.in(d, normal), b.out(d, 1)
			b.call(s.kind, a, []int{dy, x}, []int{dx}, [][][2]int{nil, {{0, 0}}, {{0, 1}}}[(i+j)%3]...)
			b.c.Grads = []Grad{{dx, x, y, dy}}
			b.end()
		}
	}
}

func binaryCases(s *suite) {
	shapes := [][2][]int{{{2, 16, 5, 6}, {2, 16, 5, 6}}, {{2, 16, 5, 6}, {16, 1, 1}}, {{3, 1}, {4}}, {{2, 1, 5}, {3, 1}}, {{7}, {}}, {{}, {2, 3}},
		{{1}, {1}}, {{}, {}}, {{4, 5}, {5}}, {{5, 1, 3}, {5, 4, 1}}, {{2, 3}, {1, 1}}}
	for range s.n {
		a := s.dims(1+s.r.IntN(4), 6)
		c := append([]int{}, a[s.r.IntN(len(a)):]...)
		for i := range c {
			if s.chance(2) {
				c[i] = 1
			}
		}
		shapes = append(shapes, [2][]int{a, c})
	}
	for i, p := range shapes {
		for j, fn := range []string{"add", "sub", "mul", "div", "max", "min", "gt", "ge", "eq"} {
			if i > 2 && (i+j)%3 != 0 {
				continue
			}
			relu := (i+j)%4 == 0
			b := s.begin(fmt.Sprint(fn, p, " relu ", relu))
			of, by := values(normal), values(normal)
			switch fn {
			case "div":
				by = positive
			case "max", "min", "gt", "ge", "eq":
				of, by = halves, halves
			}
			y := broadcast(p[0], p[1])
			var place [][2]int
			if npu.Shape(p[0]).Equal(y) && j%2 == 0 {
				place = [][2]int{{0, 0}}
			}
			desc := s.act
			if npu.Shape(p[0]).Equal(p[1]) {
				desc = s.any
			}
			in := []int{b.in(desc(p[0]...), of), b.in(desc(p[1]...), by)}
			b.call(npu.Binary, npu.Attrs{"fn": fn, "relu": relu}, in, []int{b.out(desc(y...), 1)}, place...)
			b.end()
		}
	}
}

// broadcast is the shape of both.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	y := append([]int{}, a...)
	for i, n := range b {
		if j := len(a) - len(b) + i; n != 1 {
			y[j] = n
		}
	}
	return y
}

func broadcastCases(s *suite) {
	for _, p := range [][2][]int{{{16, 1, 6}, {2, 16, 5, 6}}, {{}, {3, 4}}, {{1}, {7}}, {{5}, {5}}, {{4, 1}, {4, 9}}, {{3, 1, 1}, {2, 3, 4, 5}}} {
		b := s.begin(fmt.Sprint(p[0], " to ", p[1]))
		b.call(npu.BroadcastTo, npu.Attrs{"shape": p[1]}, []int{b.in(s.act(p[0]...), normal)}, []int{b.out(s.act(p[1]...), 1)})
		b.end()
	}
}

func reduceCases(s *suite) {
	list := [][2][]int{{{2, 16, 5, 6}, {0, 2, 3}}, {{2, 16, 5, 6}, {1}}, {{3, 4}, {0, 1}}, {{7}, {0}}, {{1, 5}, {0}}, {{5, 1}, {1}}, {{2, 3, 4}, {2}},
		{{2, 3, 4}, {0}}, {{130, 3}, {0}}, {{3, 700}, {1}}}
	for range s.n / 2 {
		d := s.dims(1+s.r.IntN(4), 9)
		var axes []int
		for i := range d {
			if s.chance(2) || len(axes) == 0 && i == len(d)-1 {
				axes = append(axes, i)
			}
		}
		list = append(list, [2][]int{d, axes})
	}
	for i, p := range list {
		for j, fn := range []string{"sum", "mean", "max"} {
			keep := (i+j)%2 == 0
			n, y := 1, []int{}
			gone := map[int]bool{}
			for _, a := range p[1] {
				gone[a], n = true, n*p[0][a]
			}
			for k, e := range p[0] {
				if !gone[k] {
					y = append(y, e)
				} else if keep {
					y = append(y, 1)
				}
			}
			for _, out := range s.results() {
				if out != s.t && fn == "max" {
					continue
				}
				a, of, size := npu.Attrs{"fn": fn, "axes": p[1], "keep": keep}, values(normal), math.Sqrt(float64(n))
				if out != s.t {
					a["out"] = "f32"
				}
				if fn == "max" {
					of = halves
				}
				b := s.begin(fmt.Sprint(fn, " of ", p[0], " over ", p[1], " keep ", keep, " to ", out))
				b.call(npu.Reduce, a, []int{b.in(s.act(p[0]...), of)}, []int{b.out(npu.D(out, y...), size)})
				b.end()
			}
		}
	}
}

// softmaxCases serves softmax and log_softmax, forward and gradient.
func softmaxCases(s *suite) {
	fwd := map[string]string{npu.Softmax: npu.Softmax, npu.SoftmaxBwd: npu.Softmax, npu.LogSoftmax: npu.LogSoftmax, npu.LogSoftmaxBwd: npu.LogSoftmax}[s.kind]
	for i, d := range s.rows() {
		for _, of := range []values{normal, scaled(20)} {
			if i > 1 && i%2 == 0 {
				of = scaled(3)
			}
			b := s.begin(fmt.Sprint(d))
			x := b.in(s.act(d...), of)
			y := b.out(s.act(d...), 1)
			b.call(fwd, npu.Attrs{}, []int{x}, []int{y})
			if s.kind != fwd {
				dy, dx := b.in(s.act(d...), normal), b.out(s.act(d...), math.Sqrt(float64(d[len(d)-1]))+3)
				b.call(s.kind, npu.Attrs{}, []int{dy, y}, []int{dx})
				b.c.Grads = []Grad{{dx, x, y, dy}}
			}
			b.end()
			if i > 1 {
				break
			}
		}
	}
}
