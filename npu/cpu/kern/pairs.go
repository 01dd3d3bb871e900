//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "pairs.h"
import "C"

import "github.com/gotrain/gotrain/npu"

// Pairs is the weight gradient of a convolution of bf16 pictures in nhwc by products of pairs of pixels. The order of dw in memory is [Out KH KW In].
type Pairs struct {
	X, DY, DW             npu.Desc // [N In H W], [N Out OH OW], [Out In KH KW]
	Stride, Dilation, Pad [2]int   // Pad: above and left
	Threads               int
}

// Sizes of the work. A strip of both factors, and the part of dw that it adds to, should fit in the second-level cache, a panel of x in the first.
const (
	pairsStrip   = 256
	pairsRows    = 256
	pairsColumns = 256
)

// Call prepares it; its arguments are x, dy, dw. It is nil unless both numbers of channels are multiples of 32 and the processor multiplies bf16.
func (p *Pairs) Call() *Call {
	if best() != C.KERN_V4 {
		return nil
	}
	return p.callFor(C.KERN_V4)
}

func (p *Pairs) callFor(isa int) *Call {
	x, y, w := p.X.Shape, p.DY.Shape, p.DW.Shape
	bf16 := p.X.DType == npu.BF16 && p.DY.DType == npu.BF16 && p.DW.DType == npu.F32
	if !bf16 || p.X.Layout != NHWC || p.DY.Layout != NHWC || x[1]%C.PAIRS_STEP != 0 || y[1]%C.PAIRS_STEP != 0 || min(x.Elems(), y.Elems(), w.Elems()) == 0 {
		return nil
	}
	rows, columns := min(pairsRows, y[1]), min(pairsColumns, x[1])
	blocks := func() int { return (y[1] + rows - 1) / rows * w[2] * w[3] * ((x[1] + columns - 1) / columns) }
	threads := max(p.Threads, 1)
	for blocks() < threads && rows > C.PAIRS_STEP { // each thread interleaves its own rows, and all of x that it needs
		rows = (rows/2 + C.PAIRS_STEP - 1) / C.PAIRS_STEP * C.PAIRS_STEP
	}
	parts := min(threads, blocks())
	part := 4 * (pairsStrip/2*(rows+columns+2*C.PAIRS_GAP) + rows*columns)
	c := &Call{kernel: "pairs", isa: isa, dt: C.KERN_BF16, slots: []int{0, 1, 2}, workspace: int64(parts) * int64(part)}
	for _, v := range []int{x[0], x[2], x[3], x[1], y[2], y[3], y[1], w[2], w[3], p.Stride[0], p.Stride[1], p.Dilation[0], p.Dilation[1], p.Pad[0], p.Pad[1],
		rows, columns, pairsStrip, parts, part} {
		c.v = append(c.v, int64(v))
	}
	return c
}
