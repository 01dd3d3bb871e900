//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/kind"
)

// prefer is the layout of a convolution's activations: Extra["layout"] if set, otherwise what was measured to be the fastest for the instruction set.
//
// AVX-512, f32: blocks of 16; bf16: nhwc. All 53 convolutions of ResNet50 and its batch normalisations, batch 16, one thread, best of several runs, in ms of
// processor time (forward, by data, by weights; forward, backward), on Sapphire Rapids with oneDNN 2.6 and other load on its memory:
//
//	               convolutions      batch normalisation
//	f32 nhwc       977 981 1123      168 334
//	f32 nChw16c    944 933 1067      148 256
//	bf16 nhwc      172 205 316       (221 396 745 with the library's own gradients, see pointwise.go and columns.go)
//	bf16 nChw16c   398 510 1107      these kernels do not use AMX
//
// oneDNN 3.2: f32 nearly the same, bf16 nhwc 155 159 271. Without AMX, bf16 was measured on Zen 5 (two threads, GFLOP/s): 816 779 531 blocked, 782 737
// 505 in nhwc, but 780 for matmul, which in nhwc does half of the gradients by weights. All kernels of a step in f32 are 1.10 times as fast in blocks there.
//
// AVX2, f32: blocks of 8, which are the library's there. Zen 4 limited to AVX2, batch 8, one thread, oneDNN 3.2, two alternating runs, in ms: forward, by data,
// by weights with Winograd's algorithm where it is faster; batch normalisation forward, backward; conversions:
//
//	f32 nhwc       518 516 661       81 114     17     (all kernels 1935)
//	f32 nChw8c     513 528 571       60  57      5     (all kernels 1776)
//
// bf16 without instructions for it is computed as f32 (widen.go), so its convolutions have the same layout. Less than AVX2, and arm64, were not measured: nhwc.
func (d *Device) prefer(t npu.DType) npu.Layout {
	if t == npu.BF16 && !d.nativeBF16() {
		t = npu.F32
	}
	switch {
	case d.layout != npu.Any:
		return d.layout
	case t == npu.F32 && strings.Contains(d.isa, "avx512"):
		return NChw16c
	case t == npu.F32 && strings.Contains(d.isa, "avx2"):
		return NChw8c
	}
	return NHWC
}

// convLayouts lists the layouts of x and y to try, best first.
func (d *Device) convLayouts(c conv) [][2]npu.Layout {
	nhwc, plain := [2]npu.Layout{NHWC, NHWC}, [2]npu.Layout{npu.Plain, npu.Plain}
	in, out := c.x.Shape[1], c.y.Shape[1]
	var list [][2]npu.Layout
	if l := d.prefer(c.y.DType); blocks(l, out) {
		switch {
		case blocks(l, in):
			list = append(list, [2]npu.Layout{l, l})
		case in <= 4 && c.groups == 1: // images are read in their plain layout
			list = append(list, [2]npu.Layout{npu.Plain, l})
		}
	}
	list = append(list, nhwc)
	for _, l := range []npu.Layout{NChw16c, NChw8c} {
		if blocks(l, in) && blocks(l, out) {
			list = append(list, [2]npu.Layout{l, l})
		}
	}
	return append(list, plain)
}

// blocks reports whether l is a layout of blocks into which so many channels can be divided.
func blocks(l npu.Layout, channels int) bool {
	block := kern.Block(l)
	return block > 0 && channels%block == 0
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
	return []npu.Layout{best, NHWC, NChw16c, NChw8c, npu.Plain}
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
