//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// pairsMaker computes weight gradients of convolutions in bf16 by a kernel of package kern that interleaves pairs of pixels, where the op names it. The
// library's products have both factors along their short side here. docs/benchmarks.md has the gain by shape.
//
// 3x3 convolutions of stride 1 have Winograd's algorithm instead, which is faster, and where both numbers of channels are large the library's products take
// as little time.
var pairsMaker = maker{choose: choosePairs, build: buildPairs}

// maxPairs is the smaller number of channels of a 1x1 convolution up to which a gain was seen.
const maxPairs = 128

// pairs returns the gradient, or errNotMine.
func (d *Device) pairs(c conv) (*kern.Call, error) {
	if d.lib == nil || !d.nativeBF16() || c.kind != npu.Conv2DBwdWeights || c.groups != 1 || c.bias || d.convLayouts(c)[0] != [2]npu.Layout{NHWC, NHWC} {
		return nil, errNotMine
	}
	k := c.w.Shape
	winograd := k[2] == 3 && k[3] == 3 && !c.strided() && c.win.Dilation == [2]int{1, 1}
	if wide := k[2]*k[3] == 1 && !c.strided() && min(k[0], k[1]) > maxPairs; winograd || wide {
		return nil, errNotMine
	}
	p := kern.Pairs{X: c.x.With(NHWC), DY: c.y.With(NHWC), DW: c.w, Stride: c.win.Stride, Dilation: c.win.Dilation, Pad: [2]int{c.win.Pad[0], c.win.Pad[1]},
		Threads: d.threads}
	if call := p.Call(); call != nil {
		return call, nil
	}
	return nil, errNotMine
}

// pairsLayout is the layout of the gradient.
func (d *Device) pairsLayout(c conv) (npu.Layout, error) {
	if c.w.Shape[2]*c.w.Shape[3] == 1 {
		return npu.Plain, nil
	}
	m, err := d.lib.NHWC(dnnl.F32, dims(c.w.Shape))
	if err != nil {
		return "", err
	}
	return d.weightLayout(c.w, m, 1)
}

func choosePairs(d *Device, op npu.Op) (npu.Op, error) {
	c := d.parseConv(op)
	if _, err := d.pairs(c); err != nil {
		return op, err
	}
	l, err := d.pairsLayout(c)
	if err != nil {
		return op, err
	}
	setLayouts(op, NHWC, l, NHWC)
	return op, nil
}

func buildPairs(d *Device, op npu.Op) (body, error) {
	c := d.parseConv(op)
	call, err := d.pairs(c)
	if err != nil {
		return nil, err
	}
	if l, err := d.pairsLayout(c); err != nil || l != c.w.Layout || c.x.Layout != NHWC || c.y.Layout != NHWC {
		return nil, errNotMine
	}
	return &kernBody{call}, nil
}
