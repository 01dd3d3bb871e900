//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// prefer is the layout of activations that convolutions are given, unless Extra["layout"] says otherwise: blocked in f32 with AVX-512, else nhwc.
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
// oneDNN 3.2: f32 nearly the same, bf16 nhwc 155 159 271. Without AMX, others measured bf16 on Zen 5 (two threads, GFLOP/s): 816 779 531 blocked, 782 737
// 505 in nhwc, but 780 for matmul, which in nhwc does half of the gradients by weights. Below AVX-512 the library's blocks have 8
// channels, so nhwc is all that is left.
func (d *Device) prefer(t npu.DType) npu.Layout {
	switch {
	case d.layout != npu.Any:
		return d.layout
	case t == npu.F32 && strings.Contains(d.isa, "avx512"):
		return NChw16c
	}
	return NHWC
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

// alwaysPlain are the kinds whose four-dimensional tensors are no pictures [N C H W] but heads [B S H D], or whose elements have their places only in
// plain order. In no other layout may a tensor reach them.
var alwaysPlain = map[string]bool{
	npu.Rope: true, npu.Attention: true, npu.AttentionBwd: true, npu.AttentionCached: true, npu.CacheWrite: true,
	npu.Embedding: true, npu.EmbeddingBwd: true, npu.RMSNorm: true, npu.RMSNormBwd: true, npu.SwiGLU: true, npu.SwiGLUBwd: true,
	npu.LinearCrossEntropy: true, npu.LinearCrossEntropyBwd: true, npu.LinearCrossEntropyGrad: true, npu.Reshape: true,
}

// actLayouts lists the layouts that the four-dimensional tensors of an op may have in common, best first: the one that most of them
// come in (a tie goes to the later, which in a gradient belongs to the forward), else the one that convolutions like.
func (d *Device) actLayouts(op npu.Op) []npu.Layout {
	if alwaysPlain[op.Kind] {
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
		t, _ := arg(op, 0)
		best = d.prefer(t.DType)
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
