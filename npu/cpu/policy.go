//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// prefer is the layout of activations that convolutions are fastest in, by instruction set and dtype.
//
// Sums over the 53 convolutions of ResNet50, batch 16, one thread, in ms of processor time (forward, by data, by weights), on
// Sapphire Rapids with other load on its memory, so +-10 %:
//
//	            f32 nhwc           f32 nChw16c        bf16 nhwc
//	oneDNN 2.6  1112 1142 1228     1092 1138 1258     205 342 741
//	oneDNN 3.2  1009 1013 1176      947  986 1077     224 223 441
//
// With AMX, bf16 in nChw16c is out of the question: those kernels do not use it (398 510 1107). Below AVX-512 the library's blocks
// are of 8 channels, so nhwc is all that is left.
func (d *Device) prefer(t npu.DType) npu.Layout {
	switch {
	case d.layout != npu.Any:
		return d.layout
	case !strings.Contains(d.isa, "avx512"):
		return NHWC
	case t == npu.BF16 && strings.Contains(d.isa, "amx"):
		return NHWC
	}
	return NChw16c
}

// convLayouts lists layouts of x and y to try, best first.
func (d *Device) convLayouts(c conv) [][2]npu.Layout {
	nhwc, plain := [2]npu.Layout{NHWC, NHWC}, [2]npu.Layout{npu.Plain, npu.Plain}
	in, out := c.x.Shape[1], c.y.Shape[1]
	var list [][2]npu.Layout
	if d.prefer(c.y.DType) == NChw16c && out%16 == 0 {
		switch {
		case in%16 == 0:
			list = append(list, [2]npu.Layout{NChw16c, NChw16c})
		case in <= 4 && c.groups == 1: // pictures are read as they are
			list = append(list, [2]npu.Layout{npu.Plain, NChw16c})
		}
	}
	list = append(list, nhwc)
	if in%16 == 0 && out%16 == 0 {
		list = append(list, [2]npu.Layout{NChw16c, NChw16c})
	}
	return append(list, plain)
}

// actLayouts lists the layouts that the four-dimensional tensors of an op may have in common, best first: the one that most of them
// come in (a tie goes to the later, which in a gradient belongs to the forward), else the one that convolutions like.
func (d *Device) actLayouts(op npu.Op) []npu.Layout {
	var best npu.Layout = npu.Any
	votes := map[npu.Layout]int{}
	four := false
	for i := range len(op.In) + len(op.Out) {
		t, in := arg(op, i)
		four = four || len(t.Shape) == 4
		if len(t.Shape) != 4 || t.Layout == npu.Any {
			continue
		}
		if in || len(votes) == 0 { // the wish for an output counts where no input says anything
			if votes[t.Layout]++; best == npu.Any || votes[t.Layout] >= votes[best] {
				best = t.Layout
			}
		}
	}
	if !four {
		return []npu.Layout{npu.Plain}
	}
	if best == npu.Any {
		best = d.prefer(npu.F32)
		if t, _ := arg(op, 0); t.DType == npu.BF16 {
			best = d.prefer(npu.BF16)
		}
	}
	return []npu.Layout{best, NHWC, NChw16c, npu.Plain}
}

// withLayout gives four-dimensional tensors the layout and all others the plain one.
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
