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
