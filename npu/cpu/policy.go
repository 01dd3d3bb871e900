//go:build cgo && linux && (amd64 || arm64)

package cpu

import "github.com/gotrain/gotrain/npu"

// prefer is the layout of activations that convolutions are given, unless Extra["layout"] says otherwise: nhwc for all of them.
//
// Best of 7 of each of the 53 convolutions of ResNet50, summed, batch 16, one thread, in ms of processor time (forward, by data, by
// weights), on Sapphire Rapids with other load on its memory, so +-5 % in f32 and +-20 % in bf16:
//
//	            f32 nhwc         f32 nChw16c      bf16 nhwc        bf16 nhwc, gradients of 1x1 as products
//	oneDNN 2.6   990 1064 1157   1019 1065 1194   221 396 745      221 249 416
//	oneDNN 3.2  1023 1070 1158   1005 1046 1164   224 223 441      220 177 377
//
// So f32 does not care, and bf16 with AMX must have nhwc: the blocked kernels do not use it (398 510 1107 in 2.6). Batch normalisation
// by package kern is as fast in either. One layout for all dtypes keeps conversions between them flat. Processors without AMX were
// measured by others (Zen 5, 2 threads, GFLOP/s, 2.6): f32 397 356 308 in nhwc, 379 374 358 in nChw16c; there the blocked
// layout may be worth a few per cent. Below AVX-512 the library's blocks have 8 channels, so nhwc is all that is left.
func (d *Device) prefer() npu.Layout {
	if d.layout != npu.Any {
		return d.layout
	}
	return NHWC
}

// convLayouts lists layouts of x and y to try, best first.
func (d *Device) convLayouts(c conv) [][2]npu.Layout {
	nhwc, plain := [2]npu.Layout{NHWC, NHWC}, [2]npu.Layout{npu.Plain, npu.Plain}
	in, out := c.x.Shape[1], c.y.Shape[1]
	var list [][2]npu.Layout
	if d.prefer() == NChw16c && out%16 == 0 {
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
		best = d.prefer()
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
