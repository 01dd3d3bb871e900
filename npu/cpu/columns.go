//go:build cgo && linux && (amd64 || arm64)

package cpu

// #include "columns.h"
// #include <stdlib.h>
//
// static void *gt_columns_address(void) { return (void *)gt_columns_run; }
import "C"

import (
	"strings"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

// columnsMaker computes the weight gradient of a convolution with many channels and few pixels as one matrix product, dyᵀ times the columns of x. In bf16
// with AMX the library's own kernels spend their time rearranging data. Last two stages of ResNet50, batch 16, one thread, processor time in ms on a busy
// machine, oneDNN 2.6.3 and 3.2.0:
//
//	256 → 256, 28x28, stride 2:   48  31   as a product 20 18
//	256 → 256, 14x14:             24  21                19 19
//	512 → 512, 14x14, stride 2:  125  83                21 17
//	512 → 512, 7x7:               58  44                21 17
//
// The gradient has its channels innermost: O KH KW C.
var columnsMaker = maker{choose: chooseColumns, build: buildColumns}

// maxColumns bounds the intermediate memory. With more pixels the library is just as fast.
const maxColumns = 32 << 20

// columns reports whether the rule applies to the op in nhwc.
func (c conv) columns(isa string) bool {
	if c.kind != npu.Conv2DBwdWeights || c.groups != 1 || c.bias || c.x.DType != npu.BF16 || c.y.DType != npu.BF16 || !strings.Contains(isa, "amx") {
		return false
	}
	in, out, taps := c.w.Shape[1], c.w.Shape[0], c.w.Shape[2]*c.w.Shape[3]
	return taps > 1 && in >= 256 && out >= 256 && in%16 == 0 && out%16 == 0 && c.columnBytes() > 0 && c.columnBytes() <= maxColumns
}

func (c conv) pixels() int64 { return c.y.Shape.Elems() / int64(c.y.Shape[1]) }

func (c conv) columnBytes() int64 {
	return c.pixels() * (npu.Shape(c.w.Shape[1:]).Elems()) * int64(c.x.DType.Size())
}

func (d *Device) columnsPD(c conv) (*dnnl.PD, error) {
	out, k := int64(c.w.Shape[0]), npu.Shape(c.w.Shape[1:]).Elems()
	dyT, err := d.lib.Strided(dnnl.BF16, []int64{out, c.pixels()}, []int64{1, out})
	if err != nil {
		return nil, err
	}
	col, err := d.lib.Strided(dnnl.BF16, []int64{c.pixels(), k}, nil)
	if err != nil {
		return nil, err
	}
	dw, err := d.lib.Strided(dnnlTypes[c.w.DType], []int64{out, k}, nil)
	if err != nil {
		return nil, err
	}
	pd, err := d.lib.MatMul(dyT, col, nil, dw, d.threads)
	return pd, notMine(err)
}

// columnsLayout is the layout of the gradient.
func (d *Device) columnsLayout(c conv) (npu.Layout, error) {
	m, err := d.lib.NHWC(dnnlTypes[c.w.DType], dims(c.w.Shape))
	if err != nil {
		return "", err
	}
	return d.weightLayout(c.w, m, 1)
}

func chooseColumns(d *Device, op npu.Op) (npu.Op, error) {
	c := d.parseConv(op)
	if !c.columns(d.isa) || d.convLayouts(c)[0] != [2]npu.Layout{NHWC, NHWC} {
		return op, errNotMine
	}
	pd, err := d.columnsPD(c)
	if err != nil {
		return op, err
	}
	if !strings.Contains(pd.Impl(), "amx") {
		return op, errNotMine
	}
	op.In[0].Layout, op.In[1].Layout = NHWC, NHWC
	op.Out[0].Layout, err = d.columnsLayout(c)
	return op, err
}

func buildColumns(d *Device, op npu.Op) (body, error) {
	c := d.parseConv(op)
	if !c.columns(d.isa) || c.x.Layout != NHWC || c.y.Layout != NHWC {
		return nil, errNotMine
	}
	if l, err := d.columnsLayout(c); err != nil || l != c.w.Layout {
		return nil, errNotMine
	}
	pd, err := d.columnsPD(c)
	if err != nil {
		return nil, err
	}
	product, err := newPrim(
		pd,
		primArg{dnnl.ArgSrc, pd.MD(dnnl.SrcMD, 0)},
		primArg{dnnl.ArgWeights, pd.MD(dnnl.WeightsMD, 0)},
		primArg{dnnl.ArgDst, pd.MD(dnnl.DstMD, 0)},
	)
	if err != nil {
		return nil, err
	}
	col := place{arg: -1}
	return &sequence{temp: (c.columnBytes() + 63) &^ 63, steps: []step{
		{make: func(args []unsafe.Pointer, ws unsafe.Pointer) (fn, self unsafe.Pointer) {
			return c.gather(args[0], col.in(args, ws))
		}},
		{body: product, args: []place{{arg: 1}, col, {arg: 2}}},
	}}, nil
}

// gather returns the command that writes the columns of x, in malloc'ed memory.
func (c conv) gather(x, col unsafe.Pointer) (fn, self unsafe.Pointer) {
	g := (*C.gt_columns)(C.calloc(1, C.sizeof_gt_columns))
	g.x, g.col = (*C.char)(x), (*C.char)(col)
	g.pixel = C.int64_t(c.x.Shape[1] * c.x.DType.Size())
	set := func(p *C.int64_t, v int) { *p = C.int64_t(v) }
	set(&g.n, c.x.Shape[0])
	set(&g.h, c.x.Shape[2])
	set(&g.w, c.x.Shape[3])
	set(&g.oh, c.y.Shape[2])
	set(&g.ow, c.y.Shape[3])
	set(&g.kh, c.w.Shape[2])
	set(&g.kw, c.w.Shape[3])
	set(&g.sh, c.win.Stride[0])
	set(&g.sw, c.win.Stride[1])
	set(&g.dh, c.win.Dilation[0])
	set(&g.dw, c.win.Dilation[1])
	set(&g.top, c.win.Pad[0])
	set(&g.left, c.win.Pad[1])
	return C.gt_columns_address(), unsafe.Pointer(g)
}
