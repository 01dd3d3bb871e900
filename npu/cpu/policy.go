//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// prefer is the layout of a convolution's activations: Extra["layout"] if set, otherwise blocked in f32 with AVX-512, and nhwc elsewhere.
//
// All 53 convolutions of ResNet50 and its batch normalisations, batch 16, one thread, best of several runs, in ms of processor time
// (forward, by data, by weights; forward, backward), on Sapphire Rapids with oneDNN 2.6 and other load on its memory:
//
//	               convolutions      batch normalisation
//	f32 nhwc       977 981 1123      168 334
//	f32 nChw16c    944 933 1067      148 256
//	bf16 nhwc      172 205 316       (221 396 745 with the library's own gradients, see pointwise.go and columns.go)
//	bf16 nChw16c   398 510 1107      these kernels do not use AMX
//
// oneDNN 3.2: f32 nearly the same, bf16 nhwc 155 159 271. Without AMX, bf16 was measured on Zen 5 (two threads, GFLOP/s): 816 779 531 blocked, 782 737
// 505 in nhwc, but 780 for matmul, which in nhwc does half of the gradients by weights. Below AVX-512 the library's blocks have 8
// channels, a layout that the kernels of package kern do not have, so only nhwc remains, although blocks of 8 would be 1.16 times as fast for all of
// ResNet50 (Zen 5 limited to AVX2, oneDNN 3.2; nChw16c is 1.10 times as fast there with AVX-512). arm64 was not measured.
func (d *Device) prefer(t npu.DType) npu.Layout {
	switch {
	case d.layout != npu.Any:
		return d.layout
	case t == npu.F32 && strings.Contains(d.isa, "avx512"):
		return NChw16c
	}
	return NHWC
}

// convLayouts lists the layouts of x and y to try, best first.
func (d *Device) convLayouts(c conv) [][2]npu.Layout {
	nhwc, plain := [2]npu.Layout{NHWC, NHWC}, [2]npu.Layout{npu.Plain, npu.Plain}
	in, out := c.x.Shape[1], c.y.Shape[1]
	var list [][2]npu.Layout
	if d.prefer(c.y.DType) == NChw16c && out%16 == 0 {
		switch {
		case in%16 == 0:
			list = append(list, [2]npu.Layout{NChw16c, NChw16c})
		case in <= 4 && c.groups == 1: // images are read in their plain layout
			list = append(list, [2]npu.Layout{npu.Plain, NChw16c})
		}
	}
	list = append(list, nhwc)
	if in%16 == 0 && out%16 == 0 {
		list = append(list, [2]npu.Layout{NChw16c, NChw16c})
	}
	return append(list, plain)
}

// alwaysPlain reports whether the op's tensors of four dimensions are heads [B S H D] rather than images [N C H W].
func alwaysPlain(op npu.Op) bool {
	k, err := kind.Lookup(op.Kind)
	return err == nil && k.Plain
}

// actLayouts lists the common layouts to try for the four-dimensional tensors of an op, best first: the one that most of them have (a tie goes to the later
// tensor, which in a gradient belongs to the forward pass), otherwise the one preferred for convolutions.
func (d *Device) actLayouts(op npu.Op) []npu.Layout {
	if alwaysPlain(op) {
		return []npu.Layout{npu.Plain}
	}
	var best npu.Layout = npu.Any
	votes := map[npu.Layout]int{}
	four := false
	for i := range len(op.In) + len(op.Out) {
		t, in := arg(op, i)
		four = four || len(t.Shape) == 4
		if len(t.Shape) != 4 || t.Layout == npu.Any {
			continue
		}
		if in || len(votes) == 0 { // an output's requested layout counts if no input has one
			if votes[t.Layout]++; best == npu.Any || votes[t.Layout] >= votes[best] {
				best = t.Layout
			}
		}
	}
	if !four {
		return []npu.Layout{npu.Plain}
	}
	if best == npu.Any {
		t, _ := arg(op, 0)
		best = d.prefer(t.DType)
	}
	return []npu.Layout{best, NHWC, NChw16c, npu.Plain}
}

// withLayout sets the layout of four-dimensional tensors, and plain for all others.
func withLayout(op *npu.Op, l npu.Layout) {
	set := func(ds []npu.Desc) {
		for i := range ds {
			ds[i].Layout = npu.Plain
			if len(ds[i].Shape) == 4 {
				ds[i].Layout = l
			}
		}
	}
	set(op.In)
	set(op.Out)
}
