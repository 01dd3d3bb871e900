package nputest

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// window is how a kernel slides: extents by h and w, padding top, left, bottom, right.
type window struct {
	k, stride, dilation [2]int
	pad                 [4]int
}

// out is the extent of the output for an input of h×w, 0 where the kernel does not fit.
func (w window) out(h, wd int) (oh, ow int) {
	one := func(n, i int) int {
		span := n + w.pad[i] + w.pad[i+2] - (w.k[i]-1)*w.dilation[i] - 1
		if span < 0 {
			return 0
		}
		return span/w.stride[i] + 1
	}
	return one(h, 0), one(wd, 1)
}

func (w window) attrs() npu.Attrs {
	return npu.Attrs{"stride": w.stride[:], "pad": w.pad[:], "dilation": w.dilation[:]}
}

// slide is a window of k×k in strides of s, with padding p all around.
func slide(k, s, p int) window {
	return window{k: [2]int{k, k}, stride: [2]int{s, s}, dilation: [2]int{1, 1}, pad: [4]int{p, p, p, p}}
}

// slides is a random window for an input of h×w that has an output.
func (s *suite) slides(h, wd, top int) window {
	for {
		w := window{k: [2]int{1 + s.r.IntN(top), 1 + s.r.IntN(top)}}
		w.stride, w.dilation = [2]int{s.pick(1, 1, 2, 3), s.pick(1, 1, 2)}, [2]int{s.pick(1, 1, 2), s.pick(1, 1, 1, 2)}
		for i := range w.pad {
			w.pad[i] = s.r.IntN(w.k[i%2])
		}
		if oh, ow := w.out(h, wd); oh > 0 && ow > 0 {
			return w
		}
	}
}

// conv is one geometry.
type conv struct {
	n, c, h, w, o, groups int
	win                   window
	bias, relu            bool
}

// convs are geometries that are known to be hard, then generated ones.
func (s *suite) convs() []conv {
	list := []conv{
		{2, 3, 23, 23, 16, 1, slide(7, 2, 3), false, false}, // the first layer of a ResNet
		{2, 64, 9, 9, 32, 1, slide(1, 1, 0), true, false},
		{1, 32, 9, 8, 48, 1, slide(3, 2, 1), true, true},
		{2, 32, 8, 8, 32, 32, slide(3, 1, 1), false, false}, // depthwise
		{2, 8, 7, 7, 16, 8, slide(3, 2, 1), true, false},    // depthwise, two of each
		{2, 64, 8, 8, 64, 4, slide(3, 1, 1), false, true},
		{1, 16, 12, 12, 16, 1, window{[2]int{3, 3}, [2]int{1, 1}, [2]int{2, 2}, [4]int{2, 2, 2, 2}}, false, false},
		{2, 5, 7, 6, 7, 1, window{[2]int{3, 2}, [2]int{1, 1}, [2]int{1, 1}, [4]int{1, 0, 0, 1}}, true, false}, // odd everything
		{2, 32, 9, 8, 24, 1, slide(1, 2, 0), false, false},                                                    // pixels are left over
		{3, 20, 7, 9, 33, 1, window{[2]int{1, 1}, [2]int{1, 3}, [2]int{1, 1}, [4]int{}}, false, false},
		{1, 48, 5, 6, 40, 1, window{[2]int{3, 2}, [2]int{2, 1}, [2]int{1, 2}, [4]int{1, 0, 2, 1}}, false, false},
		{1, 1, 1, 1, 1, 1, slide(1, 1, 0), true, true},
		{2, 32, 9, 7, 48, 1, slide(3, 1, 1), true, true}, // tiles of 2x2 and 4x4 results stick out
		{1, 17, 4, 9, 11, 1, window{[2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, [4]int{0, 2, 1, 0}}, true, false},
		{2, 3, 1, 5, 2, 1, slide(3, 1, 1), false, false}, // most of the kernel lies in the padding
		{1, 2, 4, 4, 2, 2, slide(4, 1, 0), true, false},  // one output
	}
	for range s.n {
		c := conv{n: s.pick(1, 2, 3), h: 1 + s.r.IntN(12), w: 1 + s.r.IntN(12), groups: s.pick(1, 1, 1, 2, 3), bias: s.chance(2), relu: s.chance(3)}
		c.c, c.o = c.groups*s.pick(1, 2, 3, 8, 16), c.groups*s.pick(1, 3, 5, 8, 16)
		c.win = s.slides(c.h, c.w, 5)
		list = append(list, c)
	}
	return list
}

func (c conv) String() string {
	return fmt.Sprintf("%dx%dx%dx%d to %d, kernel %v stride %v pad %v dilation %v groups %d bias %v relu %v",
		c.n, c.c, c.h, c.w, c.o, c.win.k, c.win.stride, c.win.pad, c.win.dilation, c.groups, c.bias, c.relu)
}

func (c conv) attrs() npu.Attrs {
	a := c.win.attrs()
	a["groups"], a["bias"] = c.groups, c.bias
	return a
}

// convCases serves the three kinds. A gradient needs nothing of the forward call but its inputs; float64, for differences, has both.
func convCases(s *suite) {
	for _, c := range s.convs() {
		oh, ow := c.win.out(c.h, c.w)
		taps := c.win.k[0] * c.win.k[1]
		b := s.begin(c.String())
		x := b.in(s.any(c.n, c.c, c.h, c.w), normal)
		w := b.in(s.any(c.o, c.c/c.groups, c.win.k[0], c.win.k[1]), normal)
		fwd := []int{x, w}
		bias := -1
		if c.bias {
			bias = b.in(s.full(c.o), normal)
			fwd = append(fwd, bias)
		}
		y, size := s.any(c.n, c.o, oh, ow), math.Sqrt(float64(c.c/c.groups*taps))
		out := -1
		if s.kind == npu.Conv2D || s.t == npu.F64 {
			out = b.out(y, size)
			b.call(npu.Conv2D, with(c.attrs(), "relu", c.relu && s.kind == npu.Conv2D), fwd, []int{out})
		}
		if s.kind == npu.Conv2D {
			b.end()
			continue
		}
		dy := b.in(y, normal)
		if s.kind == npu.Conv2DBwdData {
			dx := b.out(b.c.Tensors[x].Desc, math.Sqrt(float64(c.o/c.groups*taps)))
			b.call(s.kind, with(c.attrs(), "x_shape", []int{c.n, c.c, c.h, c.w}), []int{dy, w}, []int{dx})
			b.c.Grads = []Grad{{dx, x, out, dy}}
			b.end()
			continue
		}
		dwDesc := b.c.Tensors[w].Desc
		dwDesc.DType = s.f
		size = math.Sqrt(float64(c.n * oh * ow))
		outs := []int{b.out(dwDesc, size)}
		b.c.Grads = []Grad{{outs[0], w, out, dy}}
		if c.bias {
			outs = append(outs, b.out(s.full(c.o), size))
			b.c.Grads = append(b.c.Grads, Grad{outs[1], bias, out, dy})
		}
		b.call(s.kind, with(c.attrs(), "w_shape", []int(dwDesc.Shape)), []int{x, dy}, outs)
		b.end()
	}
}
